/**
 * The times in which the runtime did not answer the worker of a Pod, and the one in which no agent ran before it.
 * Invariant: from an unanswered call until an observation that was begun after it, the world is unknown: nothing is decided.
 */
import type { Outage } from '../../lifecycle/types.ts';
import type { Millis } from '../../machinery/time.ts';

export interface WorkerOutages {
  /** Those that are over, and that no decision has counted. */
  observed(): readonly Outage[];
  /** The termination in the memory of the core has counted them, if there is one. */
  counted(): void;
  /** A call that was begun then was not answered. */
  unanswered(began: Millis): void;
  isUnknown(): boolean;
  /** An observation begins now. Returns what to call when it has succeeded. */
  observing(): (now: Millis) => void;
}

/** `first`: the time in which no agent ran. */
export function createWorkerOutages(first: Outage | undefined): WorkerOutages {
  let over: readonly Outage[] = first === undefined ? [] : [first];
  let unknownSince: Millis | undefined;
  let unanswered = 0;
  return {
    observed: () => over,
    counted() {
      over = [];
    },
    unanswered(began) {
      unknownSince = Math.min(unknownSince ?? began, began);
      unanswered++;
    },
    isUnknown: () => unknownSince !== undefined,
    observing() {
      const before = unanswered;
      return (now) => {
        if (unknownSince === undefined || unanswered !== before) return;
        over = [...over, { from: unknownSince, to: now }];
        unknownSince = undefined;
      };
    },
  };
}
