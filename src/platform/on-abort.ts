/**
 * Calls `act` once: when the signal aborts, or at once if it has already aborted. In the latter case a plain `abort` listener
 * would never be called, and something started while the signal aborted would never be stopped.
 */
export function onAbort(signal: AbortSignal, act: () => void): void {
  if (signal.aborted) act();
  else signal.addEventListener('abort', act, { once: true });
}
