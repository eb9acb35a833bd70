import type { Timers } from '../../platform/platform.ts';
import { DeadlineExceeded } from './failure.ts';

/**
 * The signal of `work` aborts with DeadlineExceeded after `millis`, or with the reason of `signal`. `work` must end when its signal aborts.
 */
export async function withDeadline<T>(
  timers: Timers,
  millis: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const ending = new AbortController();
  const abort = (): void => ending.abort(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  const timer = timers.at(timers.now() + millis, () => ending.abort(new DeadlineExceeded()));
  try {
    return await work(ending.signal);
  } finally {
    timer.cancel();
    signal.removeEventListener('abort', abort);
  }
}
