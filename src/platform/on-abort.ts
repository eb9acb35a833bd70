/**
 * Calls `act` once: when the signal aborts, or immediately if it has already aborted. A plain listener would not be called after an earlier
 * abort.
 */
export function onAbort(signal: AbortSignal, act: () => void): void {
  if (signal.aborted) act();
  else signal.addEventListener('abort', act, { once: true });
}

/** Settles like the promise. Rejects with the reason of the signal if the signal aborts first, or has already aborted. */
export async function untilAborted<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason);
  onAbort(signal, abort);
  try {
    return await Promise.race([aborted.promise, promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/**
 * Calls `act` with a signal that aborts like `signal`, or with `late` if `act` does not call `progressed` for `limitMillis`. Settles like
 * `act`, but rejects with `late` if `act` rejects after the limit.
 */
export async function withLimit<T>(
  signal: AbortSignal,
  limitMillis: number,
  late: Error,
  act: (signal: AbortSignal, progressed: () => void) => Promise<T>,
): Promise<T> {
  const end = new AbortController();
  const abort = (): void => end.abort(signal.reason);
  onAbort(signal, abort);
  const timer = setTimeout(() => end.abort(late), limitMillis);
  try {
    return await act(end.signal, () => timer.refresh());
  } catch (error) {
    throw end.signal.reason === late ? late : error;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
  }
}

export const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    onAbort(signal, resolve);
  });
