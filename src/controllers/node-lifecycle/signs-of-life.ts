/** Keeps the time of the last sign of life of each node's agent, and one timer for the next check of the node. */
import type { Millis } from '../../machinery/time.ts';
import { onAbort } from '../../platform/on-abort.ts';
import type { Timer, Timers } from '../../platform/platform.ts';
import { SUSPENDED_MILLIS } from '../controller.ts';

export interface SignsOfLife {
  /** Starts to check the node. This counts as a sign of life. */
  add(node: string): void;
  seen(node: string): void;
  last(node: string): Millis | undefined;
  /** Sets the time of the next check. A time that was set before no longer applies. */
  checkAt(node: string, at: Millis): void;
  remove(node: string): void;
}

export function createSignsOfLife(
  { timers, signal }: { timers: Timers; signal: AbortSignal },
  graceMillis: Millis,
  check: (node: string) => void,
): SignsOfLife {
  const known = new Map<string, { seenAt: Millis; timer?: Timer }>();
  onAbort(signal, () => {
    for (const { timer } of known.values()) timer?.cancel();
  });
  const signs: SignsOfLife = {
    add(node) {
      signs.remove(node);
      known.set(node, { seenAt: timers.now() });
      signs.checkAt(node, timers.now() + graceMillis);
    },
    seen(node) {
      const state = known.get(node);
      if (state !== undefined) state.seenAt = timers.now();
    },
    last: (node) => known.get(node)?.seenAt,
    checkAt(node, at) {
      const state = known.get(node);
      if (state === undefined || signal.aborted) return;
      state.timer?.cancel();
      state.timer = timers.at(at, () => {
        if (timers.now() - at >= SUSPENDED_MILLIS) signs.seen(node);
        check(node);
      });
    },
    remove(node) {
      known.get(node)?.timer?.cancel();
      known.delete(node);
    },
  };
  return signs;
}
