/**
 * Tracks outages for a Pod's worker: times in which the runtime did not answer, and the time in which no agent ran before
 * the worker started.
 * Invariant: from the end of an unanswered call until an observation that started after it succeeds, the state is unknown and nothing
 * is decided. Probes and hooks do not count, since the container may have exited while they ran.
 */
import type { Outage } from '../../../lifecycle/types.ts';
import type { Millis } from '../../../machinery/time.ts';

export interface WorkerOutages {
  /** Returns the outages that are over and that no decision has taken into account yet. */
  observed(): readonly Outage[];
  /** Drops the observed outages after a decision has taken them into account. During a termination, the core's memory includes them. */
  counted(): void;
  /** Starts an outage because a call was not answered. `since`: the time from which the runtime did not answer. */
  unanswered(since: Millis): void;
  /** Whether the state is unknown because the runtime did not answer. */
  isUnknown(): boolean;
  /**
   * Called when an observation starts. Returns a function to call when the observation succeeds. The function ends the outage, unless a
   * call was not answered after the start of the observation.
   */
  observing(): (now: Millis) => void;
}

/** Creates the outages of a worker. `first`: the time before the worker's start in which no agent ran; undefined: there was none. */
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
