/**
 * Whether the container of a probe that failed still runs. A container that exits fails its probes too, a moment before the
 * runtime reports the exit; such a failure does not mean that the container is unhealthy.
 */

import { uidOf } from '../../machinery/meta.ts';
import { pause } from '../../platform/pause.ts';
import type { Timers } from '../../platform/platform.ts';
import type { ContainerRuntime } from '../../runtime/runtime.ts';
import { withDeadline } from './deadline.ts';
import type { HandlerTarget } from './target.ts';

/** How long the runtime takes at most to report the exit of a process. */
const EXIT_REPORTED_WITHIN_MILLIS = 50;
const ANSWERED_WITHIN_MILLIS = 2000;

/** undefined: the runtime does not answer. Rejects when `signal` aborts. */
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
