/**
 * Decides which taints count. A not-ready or unreachable taint from before the start of the engine may be out of date, because the node may
 * be ready by now. Such a taint does not count in the first minute after the start, in which the node reports its state.
 */
import type { Taint } from '../../api/generated/types.ts';
import { parseTime } from '../../machinery/time.ts';
import { onAbort } from '../../platform/on-abort.ts';
import type { Timers } from '../../platform/platform.ts';
import { EVICTING_KEYS } from '../../scheduling/node-taints.ts';
import { SUSPENDED_MILLIS } from '../controller.ts';

/** How long a node may take to report its state after a start or a suspension. A runtime that does not answer is reported after 30 s. */
export const WAKE_UP_MILLIS = 60_000;

/** Timestamps in the API are truncated to whole seconds. */
const WHOLE_SECONDS_MILLIS = 1000;

export interface KnownTaints {
  counts(taint: Taint): boolean;
  /** Whether the taint is a not-ready or unreachable taint from before the start, which does not count in the first minute. */
  isOld(taint: Taint): boolean;
}

/** The first minute begins with this call. `oldTaintsCount` is called when it ends. */
export function knownTaints(timers: Timers, signal: AbortSignal, oldTaintsCount: () => void): KnownTaints {
  const startedAt = timers.now();
  let doOldTaintsCount = false;
  const wait = (): void => {
    const at = timers.now() + WAKE_UP_MILLIS;
    const timer = timers.at(at, () => {
      // Nodes did not report their states during a suspension, so wait for another minute.
      if (timers.now() - at >= SUSPENDED_MILLIS) return wait();
      doOldTaintsCount = true;
      oldTaintsCount();
    });
    onAbort(signal, () => timer.cancel());
  };
  wait();
  const isOld = ({ key, timeAdded }: Taint): boolean =>
    EVICTING_KEYS.includes(key) && (parseTime(timeAdded) ?? 0) <= startedAt - WHOLE_SECONDS_MILLIS;
  return { isOld, counts: (taint) => doOldTaintsCount || !isOld(taint) };
}
