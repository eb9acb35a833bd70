/** Back-off: how long to wait before a retry, and the wait itself. */
import type { Timers } from '../platform/platform.ts';

/** Doubles from `baseMillis` with each failure (1, 2, …) up to `maxMillis`, minus a random part of up to one half. */
export function backOffMillis(failures: number, baseMillis: number, maxMillis: number): number {
  const whole = Math.min(maxMillis, baseMillis * 2 ** Math.min(failures - 1, 30));
  return whole * (1 - Math.random() / 2);
}

/** Resolves after `millis`, or at once when the signal aborts. */
export function pause(timers: Timers, millis: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = (): void => {
      timer.cancel();
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = timers.at(timers.now() + millis, done);
    signal.addEventListener('abort', done);
  });
}
