/**
 * Calls `act` once: when the signal aborts, or immediately if it has already aborted. A plain listener for `abort` is never called if it
 * is added after the signal has aborted, so a component that is started after the abort would never be stopped.
 */
export function onAbort(signal: AbortSignal, act: () => void): void {
  if (signal.aborted) act();
  else signal.addEventListener('abort', act, { once: true });
}
