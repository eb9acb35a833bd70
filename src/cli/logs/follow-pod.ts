/**
 * Follows the logs of a Pod's containers until the Pod ends, including containers that start later.
 *
 * Boundary: this file decides which log is read when; the caller prints.
 * Invariants:
 *  1. One log of a container is read at a time; the log of the next run is read after the previous one has ended.
 *  2. Logs of containers that had ended before are printed first, in the order of the Pod's containers.
 *  3. There are no timeouts or polls: it waits only for the watch of the Pod and for the logs themselves.
 */

import { hasEnded as podHasEnded } from '../../api/core/v1/pod/status/phase.ts';
import type { Pod } from '../../api/generated/types.ts';
import type { ResourceClient } from '../../client/client.ts';
import { createInformer } from '../../client/informer.ts';
import { createLog, systemTimers } from '../../platform/node.ts';
import { type PodContainer, podContainers, runOf } from '../pod-containers.ts';

export interface FollowPorts {
  pods: ResourceClient<Pod>;
  /**
   * Prints the log of the container's current run; resolves when the log has ended. `wasThere`: the run had begun before
   * the command started. Rejects only if no more logs of the Pod can be read.
   */
  print(container: PodContainer, wasThere: boolean): Promise<void>;
  /** Called with the containers to follow if none of them has begun yet. */
  waiting(containers: readonly PodContainer[]): void;
}

interface Followed {
  /** The last run whose log was or is read. */
  run: string | undefined;
  reading: boolean;
}

/**
 * `only`: the name of the one container that is followed, to the end of its present run; a defer container, to the end of
 * its last attempt. Without it all are, until the Pod has ended. Resolves then, or when `signal` aborts; with whether there was
 * a log to read.
 */
export async function followPod(
  pod: Pod,
  only: string | undefined,
  ports: FollowPorts,
  signal: AbortSignal,
): Promise<boolean> {
  const ended = new AbortController();
  const stop = AbortSignal.any([signal, ended.signal]);
  const followed = new Map<string, Followed>();
  const over = Promise.withResolvers<void>();
  let latest = pod;
  let gone = false;
  /** What has ended before is printed, and the rest may be. */
  let isOpen = false;
  /** What runs now ran before. */
  let first = false;

  const wanted = (): PodContainer[] => podContainers(latest).filter(({ name }) => only === undefined || name === only);
  const read = async (container: PodContainer, wasThere: boolean): Promise<void> => {
    const state = { run: runOf(container.status), reading: true };
    followed.set(container.name, state);
    await ports.print(container, wasThere);
    state.reading = false;
  };
  const hasEnded = (): boolean => {
    if (gone || podHasEnded(latest)) return true;
    if (only === undefined) return false;
    return wanted().every(({ kind, name, status }) =>
      kind === 'defer' ? status?.state?.terminated !== undefined : followed.has(name),
    );
  };
  const look = (): void => {
    for (const container of wanted()) {
      const run = runOf(container.status);
      const state = followed.get(container.name);
      if (run === undefined || state?.reading === true || state?.run === run) continue;
      // One run of an app container is what was asked for.
      if (only !== undefined && container.kind !== 'defer' && state !== undefined) continue;
      read(container, first).then(look, over.reject);
    }
    const isReading = [...followed.values()].some(({ reading }) => reading);
    if (!isReading && hasEnded()) over.resolve();
  };
  const heard = (heardOf: Pod): void => {
    if (heardOf.metadata.uid !== pod.metadata.uid) return;
    latest = heardOf;
    if (isOpen) look();
  };

  signal.addEventListener('abort', () => over.resolve(), { once: true });
  const { namespace = '', name } = pod.metadata;
  const informer = createInformer(
    ports.pods,
    {
      namespace,
      fieldSelector: `metadata.name=${name}`,
      log: createLog({ level: 'error' }),
      timers: systemTimers(),
      signal: stop,
    },
    {
      added: heard,
      updated: heard,
      deleted(last) {
        if (last.metadata.uid === pod.metadata.uid) gone = true;
        heard(last);
      },
    },
  );
  try {
    // Watched before it is read: whatever ends meanwhile is heard of.
    await informer.synced;
    if (signal.aborted) return false;
    if (informer.get(namespace, name)?.metadata.uid !== pod.metadata.uid) gone = true;
    const containers = wanted();
    if (containers.every(({ status }) => runOf(status) === undefined)) ports.waiting(containers);
    for (const container of containers) {
      if (container.status?.state?.terminated !== undefined && runOf(container.status) !== undefined) {
        await read(container, true);
      }
    }
    first = true;
    isOpen = true;
    look();
    first = false;
    await over.promise;
    return followed.size > 0;
  } finally {
    ended.abort();
  }
}
