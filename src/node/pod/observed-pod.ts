import { join } from 'node:path';
import { containersOf } from '../../api/core/v1/pod/containers.ts';
import type { Container, Pod } from '../../api/generated/types.ts';
import type { ContainerState } from '../../lifecycle/types.ts';
import type { Log } from '../../platform/platform.ts';
import type { ContainerObservation, ContainerRuntime, PodObservation } from '../../runtime/runtime.ts';
import { containersByName } from '../container/by-name.ts';
import { BACKOFF_ANNOTATION, containerLogPath, terminationMessageFile } from '../container/container-config.ts';
import { limitMessage, messageLimitBytes, readTerminationMessage } from '../container/termination-message.ts';
import { createOomReader, type OomReaderOptions } from '../resources/oom-kills.ts';
import type { RuntimeView } from './worker/ports.ts';

export interface PodLookOptions {
  uid: string;
  podDirectory: string;
  logDirectory: string;
  runtime: Pick<ContainerRuntime, 'observe' | 'logEnded'>;
  /** PodCgroups.oomKills(). Absent if lifepod does not manage the Pods' control groups. */
  oomKills?: OomReaderOptions['kills'] | undefined;
  log: Log;
}

export function createPodLook(options: PodLookOptions) {
  const { uid, podDirectory, runtime, oomKills = async () => undefined, log } = options;
  const readMessages = createMessageReader(options);
  const withOomKills = createOomReader({ podDirectory, kills: oomKills, log });
  return async (pod: Pod, signal: AbortSignal): Promise<RuntimeView> => {
    const seen = await withOomKills(pod, await runtime.observe(uid, signal));
    return runtimeView(seen, await readMessages(pod, seen.containers, signal));
  };
}

/**
 * Returns a function that reads the termination messages of one Pod's exited runs. The messages are by container ID and cut to the maximum
 * length. If a run has no termination message, the runtime's message is used.
 */
export function createMessageReader(options: Pick<PodLookOptions, 'podDirectory' | 'logDirectory' | 'runtime'>) {
  const known = new Map<string, string>();
  return async (
    pod: Pod,
    runs: readonly ContainerObservation[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, string>> => {
    for (const id of known.keys()) if (!runs.some((run) => run.id === id)) known.delete(id);
    const fresh = runs.filter((run) => run.state === 'exited' && !known.has(run.id));
    for (const run of fresh) known.set(run.id, (await readMessage(pod, run, options, signal)) || (run.message ?? ''));
    const limitBytes = messageLimitBytes(containersOf(pod).length);
    return new Map([...known].map(([id, message]) => [id, limitMessage(message, limitBytes)]));
  };
}

function readMessage(
  pod: Pod,
  { id, name, attempt, exitCode = 0 }: ContainerObservation,
  { podDirectory, logDirectory, runtime }: Parameters<typeof createMessageReader>[0],
  signal: AbortSignal,
): Promise<string> {
  const spec = containersByName(pod).get(name);
  return readTerminationMessage(
    {
      file: spec?.terminationMessagePath ? terminationMessageFile(podDirectory, name, attempt) : undefined,
      logFile: join(logDirectory, containerLogPath(name, attempt)),
      logEnded: async () => runtime.logEnded?.(id, signal),
      policy: spec?.terminationMessagePolicy,
      exitCode,
    },
    signal,
  );
}

export function runtimeView(seen: PodObservation, messages: ReadonlyMap<string, string>): RuntimeView {
  return {
    sandboxes: seen.sandboxes.map(({ id, attempt, ready, createdAt, ips }) => ({ id, attempt, ready, createdAt, ips })),
    containers: seen.containers.map(
      (run): ContainerState => ({
        ...run,
        backoffSeconds: Number(run.annotations[BACKOFF_ANNOTATION] ?? 0),
        message: messages.get(run.id) || run.message,
      }),
    ),
  };
}

/** Builds an object that suffices to stop and remove a Pod that exists in the runtime but not in the API. */
export function podFromRecords(uid: string, seen: PodObservation): Pod {
  const first = seen.sandboxes[0];
  const named = new Map<string, Container>(
    seen.containers.map((run) => [run.name, { name: run.name, image: run.image }]),
  );
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: first?.name ?? uid, namespace: first?.namespace ?? '', uid },
    spec: { containers: [...named.values()], restartPolicy: 'Never' },
  };
}
