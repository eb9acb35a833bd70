/** Keeps one timer for each key that a controller must reconcile later. */
import type { Millis } from '../machinery/time.ts';
import { onAbort } from '../platform/on-abort.ts';
import type { Timer, Timers } from '../platform/platform.ts';

export interface Wakes {
  /** Schedules the call of `due` with the key. A time that was set before no longer applies. Undefined cancels the call. */
  set(key: string, at: Millis | undefined): void;
  cancel(key: string): void;
}

export function createWakes(timers: Timers, signal: AbortSignal, due: (key: string) => void): Wakes {
  const pending = new Map<string, Timer>();
  const cancel = (key: string): void => {
    pending.get(key)?.cancel();
    pending.delete(key);
  };
  onAbort(signal, () => {
    for (const key of [...pending.keys()]) cancel(key);
  });
  return {
    cancel,
    set(key, at) {
      cancel(key);
      if (at === undefined || signal.aborted) return;
      const wake = (): void => {
        pending.delete(key);
        due(key);
      };
      pending.set(key, timers.at(at, wake));
    },
  };
}
