/** Virtual time advances only on request, so that hours pass in milliseconds and runs with the same input are identical. */
import type { Millis } from '../machinery/time.ts';
import type { Timers } from './platform.ts';
import { createTimerHeap } from './timer-heap.ts';

export interface VirtualTimers extends Timers {
  /** Calls the callback of each timer that becomes due, at its time. */
  advance(millis: Millis): void;
  /** Sets the clock forward at once, as a suspension of the machine does, and then calls the callbacks of all due timers. */
  suspend(millis: Millis): void;
  /**
   * Advances the clock from timer to timer until `until` returns true. If no timer is due by the time `limit`, sets the clock to `limit`.
   * Resolves with the last result of `until`. Rejects after the maximum number of steps.
   */
  run(until: () => boolean, limit: Millis): Promise<boolean>;
}

/** A simulated Pod normally needs some hundred steps until it has ended. */
const MOST_STEPS = 50_000;

/** One turn of the event loop settles promises that depend on neither timers nor I/O. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export interface VirtualTimersOptions {
  /** Resolves when nothing more can happen at the current time. Absent: after one turn of the event loop. */
  settled?: () => Promise<void>;
  /** Absent: MOST_STEPS. */
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
