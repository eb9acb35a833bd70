/**
 * Waits until containerd has written the log of an exited container. lifepod reports an exit as soon as containerd's event arrives. At this
 * time, containerd's CRI plugin may still copy the last output from the container's pipe to the log. After it has read all output, the
 * plugin deletes the task, but may still have to write the last few kB. No event reports the end of these writes: after the deletion of the
 * task, the log counts as complete when it no longer grows.
 */
import { stat } from 'node:fs/promises';
import { atMost } from '../../platform/at-most.ts';
import { pause } from '../../platform/pause.ts';
import type { Timers } from '../../platform/platform.ts';
import { type Facts, logEndOf } from './facts.ts';
import type { Observer } from './observer.ts';
import { type ContainerStatus, millisOf } from './responses.ts';

/** The limit of the wait for the deletion of the task, whose event may be missed, for example because containerd ended. */
export const LOG_END_MILLIS = 10_000;
/** The log is complete if it does not grow for this time. Writing the last few kB takes less than 10 ms, even if each line is empty. */
export const QUIET_MILLIS = 20;
/** The log of a container that exited longer ago is complete. */
export const SETTLED_MILLIS = 1_000;

export interface LogEndParts {
  facts: Facts;
  observer: Pick<Observer, 'containerStatus'>;
  timers: Timers;
}

/**
 * Resolves when the log of the exited container is complete. Waits at most LOG_END_MILLIS for the deletion of the task, and then until the
 * log no longer grows, if CRI has reported its path. Rejects only if `signal` is aborted.
 */
export async function logEnded(parts: LogEndParts, id: string, signal: AbortSignal): Promise<void> {
  const { facts, observer, timers } = parts;
  const known = facts.containers.get(id);
  const isSettled = (exit: number | undefined): boolean => timers.now() - (exit ?? 0) > SETTLED_MILLIS;
  // A container without an entry does not exist any more.
  if (known === undefined || (known.final !== undefined && isSettled(known.final.finishedAt))) return;
  const { promise } = logEndOf(known);
  let status: ContainerStatus | undefined;
  try {
    status = await observer.containerStatus(id, signal);
    if (status === undefined) return;
  } catch {
    // The wait continues although the runtime cannot be reached: the runtime copies the remaining output after its next start.
    signal.throwIfAborted();
  }
  if (status?.state !== 'CONTAINER_EXITED') await atMost(promise, LOG_END_MILLIS, timers, signal);
  else if (isSettled(millisOf(status.finishedAt))) return;
  if (status?.logPath) await quiet(status.logPath, timers, signal);
  signal.throwIfAborted();
}

/** Resolves when the file has not grown for QUIET_MILLIS, if it does not exist, or when `signal` aborts. */
async function quiet(path: string, timers: Timers, signal: AbortSignal): Promise<void> {
  for (let last: number | undefined; !signal.aborted; ) {
    const size = (await stat(path).catch(() => undefined))?.size;
    if (size === undefined || size === last) return;
    last = size;
    await pause(timers, QUIET_MILLIS, signal);
  }
}
