/**
 * Follows the logs of all containers of a Pod, including containers that start later, or of one container.
 *
 * Invariants:
 *  1. Only one log of a container is read at a time. The log of the next run is read when the log of the previous run has ended.
 *  2. The logs of containers that have ended when followPod() starts are printed first, in the order of the Pod's containers.
 *  3. There are no timeouts or polls: followPod() waits only for the watch of the Pod and for the logs themselves.
 */

import { hasEnded } from '../../api/core/v1/pod/status/final-phase.ts';
import type { Pod } from '../../api/generated/types.ts';
import type { ResourceClient } from '../../client/client.ts';
import { createInformer } from '../../client/informer.ts';
import { createLog, systemTimers } from '../../platform/node-js.ts';
import { type PodContainer, podContainers, runOf } from '../pod-containers.ts';

export interface FollowPorts {
  pods: ResourceClient<Pod>;
  /** `wasThere` is false if the run began after followPod() had started to follow running containers. A rejection ends followPod(). */
  print(container: PodContainer, wasThere: boolean): Promise<void>;
  /** Called once with the containers to follow if none of them has run yet. */
  waiting(containers: readonly PodContainer[]): void;
}

/** The latest log of a container. `run`: the ID of the run. */
interface FollowedLog {
  run: string | undefined;
  isOpen: boolean;
}

interface Following {
  pod: Pod;
  isPodGone: boolean;
  logs: Map<string, FollowedLog>;
  /** Undefined: all containers are followed. */
  readonly only: string | undefined;
}

/**
 * Prints the log of the container `only`: of its latest run, of the first run if none has begun, or, for a defer container, of the latest
 * and all later attempts. If `only` is undefined, prints the logs of all containers until the Pod has ended. When there is nothing left to
 * follow, or when `signal` aborts, resolves with whether there was a log to read.
 */
export async function followPod(
  pod: Pod,
  only: string | undefined,
  ports: FollowPorts,
  signal: AbortSignal,
): Promise<boolean> {
  const following: Following = { pod, isPodGone: false, logs: new Map(), only };
  const reader = createLogReader(following, ports.print);
  const ended = new AbortController();
  signal.addEventListener('abort', reader.stop, { once: true });
  try {
    // The watch starts before any log is read, so that no change of the Pod is missed.
    await watchPod(following, ports.pods, reader.update, AbortSignal.any([signal, ended.signal]));
    if (signal.aborted) return false;
    const containers = followedContainers(following);
    if (containers.every(({ status }) => runOf(status) === undefined)) ports.waiting(containers);
    await reader.printEnded(containers);
    await reader.follow();
    return following.logs.size > 0;
  } finally {
    ended.abort();
  }
}

async function watchPod(
  following: Following,
  pods: ResourceClient<Pod>,
  changed: () => void,
  signal: AbortSignal,
): Promise<void> {
  const { uid, namespace = '', name } = following.pod.metadata;
  const update = (pod: Pod, isGone: boolean): void => {
    // Another Pod may have been created with the same name.
    if (pod.metadata.uid !== uid) return;
    following.pod = pod;
    following.isPodGone ||= isGone;
    changed();
  };
  const informer = createInformer(
    pods,
    {
      namespace,
      fieldSelector: `metadata.name=${name}`,
      log: createLog({ level: 'error' }),
      timers: systemTimers(),
      signal,
    },
    {
      added: (pod) => update(pod, false),
      updated: (pod) => update(pod, false),
      deleted: (pod) => update(pod, true),
    },
  );
  await informer.synced;
  if (informer.get(namespace, name)?.metadata.uid !== uid) following.isPodGone = true;
}

interface LogReader {
  printEnded(containers: readonly PodContainer[]): Promise<void>;
  /** Prints the logs of all other runs to follow, including future runs. Resolves when there is nothing left to follow, or after stop(). */
  follow(): Promise<void>;
  /** Call this after each change of the Pod. Does nothing before follow() is called. */
  update(): void;
  stop(): void;
}

function createLogReader(following: Following, print: FollowPorts['print']): LogReader {
  const over = Promise.withResolvers<void>();
  let isStarted = false;
  const read = async (container: PodContainer, wasThere: boolean): Promise<void> => {
    const log = { run: runOf(container.status), isOpen: true };
    following.logs.set(container.name, log);
    await print(container, wasThere);
    log.isOpen = false;
  };
  const readNext = (wasThere: boolean): void => {
    for (const container of containersToRead(following)) {
      read(container, wasThere).then(() => readNext(false), over.reject);
    }
    if (isFinished(following)) over.resolve();
  };
  return {
    async printEnded(containers) {
      for (const container of containers) {
        const { status } = container;
        if (status?.state?.terminated !== undefined && runOf(status) !== undefined) await read(container, true);
      }
    },
    follow() {
      isStarted = true;
      readNext(true);
      return over.promise;
    },
    update() {
      if (isStarted) readNext(false);
    },
    stop: () => over.resolve(),
  };
}

const followedContainers = ({ pod, only }: Following): PodContainer[] =>
  podContainers(pod).filter(({ name }) => only === undefined || name === only);

/** Returns the containers with an unread log of their latest run, except containers of which another log is being read. */
function containersToRead(following: Following): PodContainer[] {
  const { logs, only } = following;
  return followedContainers(following).filter(({ kind, name, status }) => {
    const run = runOf(status);
    const log = logs.get(name);
    if (run === undefined || log?.isOpen === true || log?.run === run) return false;
    // If only one container is followed, only one of its runs is read. For a defer container, later attempts are read, too.
    return log === undefined || only === undefined || kind === 'defer';
  });
}

function isFinished(following: Following): boolean {
  const { pod, isPodGone, logs, only } = following;
  if ([...logs.values()].some(({ isOpen }) => isOpen)) return false;
  if (isPodGone || hasEnded(pod)) return true;
  if (only === undefined) return false;
  return followedContainers(following).every(({ kind, name, status }) =>
    kind === 'defer' ? status?.state?.terminated !== undefined : logs.has(name),
  );
}
