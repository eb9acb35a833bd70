import { pause } from './pause.ts';
import type { Timers } from './platform.ts';

/** Resolves when `promise` resolves, after `millis`, or when `signal` aborts. Rejects only if `promise` rejects first. */
export async function atMost(
  promise: Promise<void>,
  millis: number,
  timers: Timers,
  signal: AbortSignal,
): Promise<void> {
  const done = new AbortController();
  try {
    await Promise.race([promise, pause(timers, millis, AbortSignal.any([signal, done.signal]))]);
  } finally {
    done.abort();
  }
}
