/**
 * Records all versions of the Pods and all Events of a namespace, so that tests can wait for versions and examine earlier ones. The
 * recording ends when the engine is restarted, because the new engine may listen on another port.
 */

import type { ContainerStatus, CoreV1Event, Pod, PodCondition } from '../../src/api/generated/types.ts';
import { EVENTS, PODS } from '../../src/api/resources.ts';
import { createInformer } from '../../src/client/informer.ts';
import { clientFromKubeconfig } from '../../src/client/kubeconfig.ts';
import { cgroupVersion } from '../../src/platform/control-groups/cgroups.ts';
import { createLog, systemTimers } from '../../src/platform/node-js.ts';
import type { LifepodClient } from './lifepod.ts';

const DEADLINE_MILLIS = 60_000;

/** On cgroup v1, only the runtime knows of a kill for lack of memory, and it may report the end of the container first. */
export const OOM_REASONS = cgroupVersion() === 2 ? /^OOMKilled$/ : /^(OOMKilled|Error)$/;

export interface Seen {
  /** From Date.now(), when the test received the version. */
  at: number;
  pod: Pod;
}

export interface PodRecord {
  /** Resolves with the current version if `satisfies` returns true for it, else with the first later one. Rejects after a minute. */
  until(name: string, satisfies: (pod: Pod) => boolean): Promise<Pod>;
  /** Returns the last version of the Pod. Throws if none has been recorded. */
  now(name: string): Pod;
  /** Resolves when the Pod has been deleted from the API, with the time from Date.now(). */
  gone(name: string): Promise<number>;
  history(name: string): Seen[];
  /** In the form `Type Reason: message`, in the order of their arrival. */
  events(name: string): string[];
  /** Resolves with the first matching line of events(). */
  event(name: string, matching: RegExp): Promise<string>;
  end(): void;
}

/** Each pending wait checks its condition again after each arrival. */
class Recording {
  private readonly versions = new Map<string, Seen[]>();
  private readonly goneAt = new Map<string, number>();
  private readonly eventLines = new Map<string, string[]>();
  private readonly checks = new Set<() => void>();

  add(pod: Pod): void {
    const { name } = pod.metadata;
    this.goneAt.delete(name);
    this.versions.set(name, [...this.history(name), { at: Date.now(), pod }]);
    this.changed();
  }

  remove({ metadata }: Pod): void {
    this.goneAt.set(metadata.name, Date.now());
    this.changed();
  }

  addEvent({ involvedObject, type, reason, message }: CoreV1Event): void {
    const { name = '' } = involvedObject;
    this.eventLines.set(name, [...this.events(name), `${type} ${reason}: ${message}`]);
    this.changed();
  }

  history(name: string): Seen[] {
    return this.versions.get(name) ?? [];
  }

  latest(name: string): Pod | undefined {
    return this.history(name).at(-1)?.pod;
  }

  events(name: string): string[] {
    return this.eventLines.get(name) ?? [];
  }

  removedAt(name: string): number | undefined {
    return this.goneAt.get(name);
  }

  /**
   * Calls `find` now and after each arrival, and resolves with the first value that `find` returns. After DEADLINE_MILLIS, rejects with
   * `problem` and the Pod's last state.
   */
  wait<T>(name: string, find: () => T | undefined, problem: string): Promise<T> {
    return new Promise((resolve, reject) => {
      const settle = (outcome: () => void): void => {
        clearTimeout(deadline);
        this.checks.delete(check);
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
      const expire = (): void => reject(new Error(`the Pod ${name} ${problem}:\n${this.describe(name)}`));
      const deadline = setTimeout(() => settle(expire), DEADLINE_MILLIS);
      this.checks.add(check);
      check();
    });
  }

  private describe(name: string): string {
    return `${JSON.stringify(this.latest(name)?.status, undefined, 1)}\n${this.events(name).join('\n')}`;
  }

  private changed(): void {
    for (const check of [...this.checks]) check();
  }
}

export async function recordPods(
  lifepod: Pick<LifepodClient, 'kubeconfig'>,
  namespace = 'default',
): Promise<PodRecord> {
  const client = await clientFromKubeconfig(lifepod.kubeconfig);
  const abort = new AbortController();
  const options = { namespace, log: createLog({ level: 'error' }), timers: systemTimers(), signal: abort.signal };
  const recording = new Recording();
  const put = (pod: Pod): void => recording.add(pod);
  const pods = createInformer<Pod>(client.resource(PODS), options, {
    added: put,
    updated: put,
    deleted: (pod) => recording.remove(pod),
  });
  const putEvent = (event: CoreV1Event): void => recording.addEvent(event);
  const events = createInformer<CoreV1Event>(client.resource(EVENTS), options, { added: putEvent, updated: putEvent });
  await Promise.all([pods.synced, events.synced]);
  return {
    until(name, satisfies) {
      const find = (): Pod | undefined => {
        const pod = recording.latest(name);
        return pod !== undefined && recording.removedAt(name) === undefined && satisfies(pod) ? pod : undefined;
      };
      return recording.wait(name, find, `never satisfied ${satisfies}`);
    },
    now(name) {
      const pod = recording.latest(name);
      if (pod === undefined) throw new Error(`there was no Pod ${name}`);
      return pod;
    },
    gone: (name) => recording.wait(name, () => recording.removedAt(name), 'still exists'),
    history: (name) => recording.history(name),
    events: (name) => recording.events(name),
    event(name, matching) {
      const find = (): string | undefined => recording.events(name).find((line) => matching.test(line));
      return recording.wait(name, find, `has no Event like ${matching}`);
    },
    end: () => abort.abort(),
  };
}

/** Sends the signal to the container's first process. Ignores the exit code, because the signal may end the command too. */
export async function signalFirst(
  lifepod: LifepodClient,
  name: string,
  container: string,
  signal: string,
): Promise<void> {
  await lifepod.exec(name, '-c', container, '--', 'kill', `-${signal}`, '1');
}

/** Throws if the Pod has no status for the container. */
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
