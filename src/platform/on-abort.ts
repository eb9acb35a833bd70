/**
 * Calls `act` once: when the signal aborts, or at once where it has aborted before. What is started meanwhile, with a signal that
 * aborts during the start, ends as well; a plain listener for `abort` would never be called.
 */
export function onAbort(signal: AbortSignal, act: () => void): void {
  if (signal.aborted) act();
  else signal.addEventListener('abort', act, { once: true });
}
