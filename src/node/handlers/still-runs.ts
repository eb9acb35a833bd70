import { uidOf } from '../../machinery/meta.ts';
import { pause } from '../../platform/pause.ts';
import type { Timers } from '../../platform/platform.ts';
import type { ContainerRuntime } from '../../runtime/runtime.ts';
import { withDeadline } from './deadline.ts';
import type { HandlerTarget } from './target.ts';

/** A runtime normally reports the exit of a process within this time. */
const EXIT_REPORTED_WITHIN_MILLIS = 50;
const ANSWERED_WITHIN_MILLIS = 2000;

/**
 * Whether the container of a failed probe still runs; undefined if the runtime fails or does not answer in 2 s. The probes of a container
 * that is exiting also fail, shortly before the runtime reports the exit. Rejects when `signal` aborts.
 */
export async function stillRuns(
  { pod, containerId }: Pick<HandlerTarget, 'pod' | 'containerId'>,
  { runtime, timers }: { runtime: Pick<ContainerRuntime, 'observe'>; timers: Timers },
  signal: AbortSignal,
): Promise<boolean | undefined> {
  await pause(timers, EXIT_REPORTED_WITHIN_MILLIS, signal);
  signal.throwIfAborted();
  const look = (inTime: AbortSignal) => runtime.observe(uidOf(pod), inTime);
  const seen = await withDeadline(timers, ANSWERED_WITHIN_MILLIS, signal, look).catch(() => undefined);
  signal.throwIfAborted();
  return seen?.containers.some(({ id, state }) => id === containerId && state === 'running');
}
