/**
 * Implements virtual time for simulations and tests. The clock advances only on request, so that hours pass in milliseconds and runs with
 * the same input are identical.
 */
import type { Millis } from '../machinery/time.ts';
import type { Timers } from './platform.ts';
import { createTimerHeap } from './timer-heap.ts';

export interface VirtualTimers extends Timers {
  /** Advances the clock by `millis`, and calls the callback of each timer that becomes due, at its time. */
  advance(millis: Millis): void;
  /** Sets the clock forward by `millis`, as a suspension of the machine does, and then calls the callbacks of all due timers. */
  suspend(millis: Millis): void;
  /**
   * Advances the clock from timer to timer until `until` (called before and after each step) returns true. If no timer is left, or the
   * next timer is later than the time `limit`, sets the clock to `limit` and ends. Resolves with the last result of `until`. Rejects after
   * the maximum number of steps.
   */
  run(until: () => boolean, limit: Millis): Promise<boolean>;
}

/** The maximum number of steps in one call of run(). A simulated Pod normally needs some hundred steps until it has ended. */
const MOST_STEPS = 50_000;

/** Resolves once all promises have settled, except those that depend on timers, input, output, or later turns of the event loop. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export interface VirtualTimersOptions {
  /** Resolves when nothing more can happen at the current time. Absent: after one turn of the event loop, which is enough without I/O. */
  settled?: () => Promise<void>;
  /** The maximum number of steps in one call of run(). Absent: MOST_STEPS. */
  mostSteps?: number;
}

export function createVirtualTimers(
  start: Millis = Date.UTC(2026, 0, 31),
  { settled = settle, mostSteps = MOST_STEPS }: VirtualTimersOptions = {},
): VirtualTimers {
  const heap = createTimerHeap();
  let now = start;
  const callDue = (at: Millis): void => {
    now = Math.max(now, at);
    for (const callback of heap.takeDue(now)) callback();
  };
  return {
    now: () => now,
    at(time, callback) {
      const entry = heap.add(Math.max(time, now), callback);
      return { cancel: () => heap.remove(entry) };
    },
    advance(millis) {
      const end = now + millis;
      for (let next = heap.nextTime(); next !== undefined && next <= end; next = heap.nextTime()) callDue(next);
      now = end;
    },
    suspend: (millis) => callDue(now + millis),
    async run(until, limit) {
      for (let steps = 0; ; steps++) {
        if (steps > mostSteps)
          throw new Error(`no rest after ${mostSteps} steps: something wakes itself again and again`);
        await settled();
        if (until()) return true;
        const next = heap.nextTime();
        if (next === undefined || next > limit) {
          now = limit;
          return until();
        }
        callDue(next);
      }
    },
  };
}
