/**
 * Virtual time: the clock advances only when the simulation advances it, so that hours pass in milliseconds and every run
 * with the same seed is the same.
 */
import type { Millis, Timers } from '../platform/platform.ts';
import { createTimerHeap } from '../platform/timer-heap.ts';

export interface VirtualTimers extends Timers {
  /**
   * Advances the clock from timer to timer until `until` (called after each step) returns true, no timer is left, or `limit` is
   * reached. Resolves to whether `until` returned true. Rejects after MOST_STEPS steps.
   */
  run(until: () => boolean, limit: Millis): Promise<boolean>;
}

/** The maximum number of steps in one call of run(). A life normally has some hundred steps. */
const MOST_STEPS = 50_000;

/** Resolves once every promise that does not depend on a timer has settled. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export function createVirtualTimers(start: Millis): VirtualTimers {
  const heap = createTimerHeap();
  let now = start;
  return {
    now: () => now,
    at(time, callback) {
      const entry = heap.add(Math.max(time, now), callback);
      return { cancel: () => heap.remove(entry) };
    },
    async run(until, limit) {
      for (let steps = 0; ; steps++) {
        if (steps > MOST_STEPS)
          throw new Error(`no rest after ${MOST_STEPS} steps: something wakes itself again and again`);
        await settle();
        if (until()) return true;
        const next = heap.nextTime();
        if (next === undefined || next > limit) {
          now = limit;
          return until();
        }
        now = Math.max(now, next);
        for (const callback of heap.takeDue(now)) callback();
      }
    },
  };
}
