/**
 * Virtual time: Timers that stand still until the simulation moves them, so that hours pass in milliseconds and every
 * run of a seed is the same.
 */
import type { Millis } from '../machinery/time.ts';
import type { Timers } from '../platform/platform.ts';
import { createTimerHeap } from '../platform/timer-heap.ts';

export interface VirtualTimers extends Timers {
  /**
   * Lets time pass from timer to timer until `until` (checked after each step) is true, no timer is left, or `limit` is reached.
   * Resolves to whether `until` became true. Rejects if the timers never come to rest.
   */
  run(until: () => boolean, limit: Millis): Promise<boolean>;
}

/** A life normally has some hundred steps. */
const MOST_STEPS = 50_000;

/** Settles every promise that can be settled. */
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
