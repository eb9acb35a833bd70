/**
 * Tracks outages for a Pod's worker: times in which the runtime did not answer, and the time without an agent before the worker started.
 */
import type { Outage } from '../../../lifecycle/types.ts';
import type { Millis } from '../../../machinery/time.ts';

export interface WorkerOutages {
  /** Returns the outages that are over and that no decision has taken into account yet. */
  observed(): readonly Outage[];
  /** Called after a decision has taken the observed outages into account. */
  counted(): void;
  unanswered(since: Millis): void;
  isUnknown(): boolean;
  /**
   * Called when an observation starts. Call the returned function when the observation succeeds. It ends the outage, unless a call was not
   * answered after the start of the observation.
   */
  observing(): (now: Millis) => void;
}

/** `first`: the time before the worker's start in which no agent ran; undefined: there was none. */
export function createWorkerOutages(first: Outage | undefined): WorkerOutages {
  let over: readonly Outage[] = first === undefined ? [] : [first];
  let unknownSince: Millis | undefined;
  let unanswered = 0;
  return {
    observed: () => over,
    counted() {
      over = [];
    },
    unanswered(since) {
      unknownSince = Math.min(unknownSince ?? since, since);
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
