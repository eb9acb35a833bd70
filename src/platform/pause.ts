import type { Timers } from './platform.ts';

/** Resolves after `millis`, or as soon as `signal` aborts. Never rejects. */
export function pause(timers: Timers, millis: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = (): void => {
      timer.cancel();
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = timers.at(timers.now() + millis, done);
    signal?.addEventListener('abort', done);
  });
}
