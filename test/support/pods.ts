/**
 * Records all versions of the Pods and all Events of a namespace, for tests to wait on and to look back at. A restart of the engine,
 * which may then listen on another port, ends the recording.
 */
import type { ContainerStatus, CoreV1Event, Pod, PodCondition } from '../../src/api/generated/types.ts';
import { createInformer } from '../../src/client/informer.ts';
import { clientFromKubeconfig } from '../../src/client/kubeconfig.ts';
import { createLog, systemTimers } from '../../src/platform/node.ts';
import type { Lifepod } from './lifepod.ts';

const DEADLINE_MILLIS = 60_000;

export interface Seen {
  /** Date.now() when the test received the version. */
  at: number;
  pod: Pod;
}

export interface PodRecord {
  /** Resolves with the first version, from the present one on, that satisfies; rejects with the last version after a minute. */
  until(name: string, satisfies: (pod: Pod) => boolean): Promise<Pod>;
  /** The last version of the Pod; throws if there was none. */
  now(name: string): Pod;
  /** Resolves with Date.now() of the object's deletion from the API. */
  gone(name: string): Promise<number>;
  history(name: string): Seen[];
  /** All Events of the Pod so far, as `Type Reason: message`, in the order of their arrival. */
  events(name: string): string[];
  /** Resolves with the first such line that matches. */
  event(name: string, matching: RegExp): Promise<string>;
  end(): void;
}

export async function recordPods(lifepod: Lifepod, namespace = 'default'): Promise<PodRecord> {
  const client = await clientFromKubeconfig(lifepod.kubeconfig);
  const abort = new AbortController();
  const log = createLog({ level: 'error' });
  const options = { namespace, log, timers: systemTimers(), signal: abort.signal };
  const versions = new Map<string, Seen[]>();
  const goneAt = new Map<string, number>();
  const told = new Map<string, string[]>();
  const waiting = new Set<() => void>();
  const changed = (): void => {
    for (const check of [...waiting]) check();
  };
  const put = (pod: Pod): void => {
    const { name } = pod.metadata;
    goneAt.delete(name);
    versions.set(name, [...(versions.get(name) ?? []), { at: Date.now(), pod }]);
    changed();
  };
  const hear = ({ involvedObject, type, reason, message }: CoreV1Event): void => {
    const { name = '' } = involvedObject;
    told.set(name, [...(told.get(name) ?? []), `${type} ${reason}: ${message}`]);
    changed();
  };
  const pods = createInformer<Pod>(client.resource({ group: '', version: 'v1', resource: 'pods' }), options, {
    added: put,
    updated: put,
    deleted: ({ metadata }) => {
      goneAt.set(metadata.name, Date.now());
      changed();
    },
  });
  const events = createInformer<CoreV1Event>(
    client.resource({ group: '', version: 'v1', resource: 'events' }),
    options,
    { added: hear, updated: hear },
  );
  await Promise.all([pods.synced, events.synced]);

  const wait = <T>(find: () => T | undefined, otherwise: () => string): Promise<T> =>
    new Promise((resolve, reject) => {
      const settle = (outcome: () => void): void => {
        clearTimeout(deadline);
        waiting.delete(check);
        outcome();
      };
      const check = (): void => {
        try {
          const found = find();
          if (found !== undefined) settle(() => resolve(found));
        } catch (error) {
          settle(() => reject(error));
        }
      };
      const deadline = setTimeout(() => settle(() => reject(new Error(otherwise()))), DEADLINE_MILLIS);
      waiting.add(check);
      check();
    });
  const latest = (name: string): Pod | undefined => versions.get(name)?.at(-1)?.pod;
  const describe = (name: string): string =>
    `${JSON.stringify(latest(name)?.status, undefined, 1)}\n${told.get(name)?.join('\n')}`;

  return {
    until: (name, satisfies) =>
      wait(
        () => {
          const pod = latest(name);
          return pod !== undefined && !goneAt.has(name) && satisfies(pod) ? pod : undefined;
        },
        () => `the Pod ${name} never satisfied ${satisfies}:\n${describe(name)}`,
      ),
    now: (name) => {
      const pod = latest(name);
      if (pod === undefined) throw new Error(`there was no Pod ${name}`);
      return pod;
    },
    gone: (name) =>
      wait(
        () => goneAt.get(name),
        () => `the Pod ${name} still exists:\n${describe(name)}`,
      ),
    history: (name) => versions.get(name) ?? [],
    events: (name) => told.get(name) ?? [],
    event: (name, matching) =>
      wait(
        () => told.get(name)?.find((line) => matching.test(line)),
        () => `the Pod ${name} has no Event like ${matching}:\n${describe(name)}`,
      ),
    end: () => abort.abort(),
  };
}

/** Signals the container's first process with kubectl. The process may end before the command does, and so kill the command. */
export async function signalFirst(lifepod: Lifepod, name: string, container: string, signal: string): Promise<void> {
  await lifepod.kubectl('exec', name, '-c', container, '--', 'kill', `-${signal}`, '1');
}

/** The status of a container of any kind; throws if there is none. */
export function statusOf(pod: Pod, container: string): ContainerStatus {
  const found = findStatus(pod, container);
  if (found === undefined) throw new Error(`the Pod ${pod.metadata.name} shows no container ${container}`);
  return found;
}

function findStatus({ status = {} }: Pod, container: string): ContainerStatus | undefined {
  return [
    ...(status.initContainerStatuses ?? []),
    ...(status.containerStatuses ?? []),
    ...(status.deferContainerStatuses ?? []),
    ...(status.ephemeralContainerStatuses ?? []),
  ].find(({ name }) => name === container);
}

export const condition = (pod: Pod, type: string): PodCondition | undefined =>
  pod.status?.conditions?.find((each) => each.type === type);

/** Predicates for until(). */
export const isReady = (pod: Pod): boolean => condition(pod, 'Ready')?.status === 'True';
export const inPhase =
  (phase: string) =>
  (pod: Pod): boolean =>
    pod.status?.phase === phase;
export const restarted =
  (container: string, count: number) =>
  (pod: Pod): boolean =>
    (findStatus(pod, container)?.restartCount ?? 0) >= count;
export const ready =
  (container: string) =>
  (pod: Pod): boolean =>
    findStatus(pod, container)?.ready === true;
export const runs =
  (container: string) =>
  (pod: Pod): boolean =>
    findStatus(pod, container)?.state?.running !== undefined;
export const ended =
  (container: string) =>
  (pod: Pod): boolean =>
    findStatus(pod, container)?.state?.terminated !== undefined;
export const waitsFor =
  (container: string, ...reasons: string[]) =>
  (pod: Pod): boolean =>
    reasons.includes(findStatus(pod, container)?.state?.waiting?.reason ?? '');
