/** For unit tests: timers that the test advances, and a log that writes nothing. */

import type { Log, Millis, Timers } from '../platform/platform.ts';
import { createTimerHeap } from '../platform/timer-heap.ts';

export const silentLog: Log = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLog,
};

export interface TestTimers extends Timers {
  /** Moves the clock forward by `millis`, then calls the callbacks of all timers that are due, the earliest first. */
  advance(millis: Millis): void;
}

export function testTimers(start: Millis = Date.UTC(2026, 0, 31)): TestTimers {
  const heap = createTimerHeap();
  let now = start;
  return {
    now: () => now,
    at(time, callback) {
      const entry = heap.add(time, callback);
      return { cancel: () => heap.remove(entry) };
    },
    advance(millis) {
      now += millis;
      for (const callback of heap.takeDue(now)) callback();
    },
  };
}
