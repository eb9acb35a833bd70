/**
 * Calls `act` once: when the signal aborts, or immediately if it has already aborted. A plain listener for `abort` is never called if it
 * is added after the signal has aborted, so a component that is started after the abort would never be stopped.
 */
export function onAbort(signal: AbortSignal, act: () => void): void {
  if (signal.aborted) act();
  else signal.addEventListener('abort', act, { once: true });
}

/** Waits for the promise. Rejects with the reason of the signal if the signal aborts first, or has already aborted. */
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
