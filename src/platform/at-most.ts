import { untilAborted } from './on-abort.ts';
import { pause } from './pause.ts';
import type { Timers } from './platform.ts';

/** Resolves when `promise` resolves, after `millis`, or when `signal` aborts. Rejects if `promise` rejects before that. */
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

/** Settles like the promise. Rejects with an Error with `message` after `millis`, and with the signal's reason when `signal` aborts. */
export async function inTime<T>(
  promise: Promise<T>,
  millis: number,
  timers: Timers,
  message: string,
  signal: AbortSignal,
): Promise<T> {
  const done = new AbortController();
  const late = async (): Promise<never> => {
    await pause(timers, millis, done.signal);
    throw new Error(message);
  };
  try {
    return await untilAborted(signal, Promise.race([promise, late()]));
  } finally {
    done.abort();
  }
}
