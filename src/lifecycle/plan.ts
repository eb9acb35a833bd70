/**
 * Collects what one decision asks for: actions that are neither under way nor held back by a failure, and the earliest
 * time at which something held back becomes due.
 */
import type { Millis } from '../machinery/time.ts';
import { pullRetryAt, retryAt } from './restart.ts';
import { type Action, actionKey, type Failure, type Observed } from './types.ts';

export interface Plan {
  readonly actions: Action[];
  readonly wakeAt: Millis | undefined;
  /** Asks for the action, unless it is under way or its last failure was too recent: `dueAfter` tells when it may be tried again. */
  act(action: Action, dueAfter?: (failure: Failure) => Millis): void;
  /** Is the action of this key under way, or asked for just now? */
  pending(key: string): boolean;
  /** Ask again then; a time that has passed needs no asking. */
  wake(at: Millis): void;
}

const isPull = ({ kind }: Action, { image }: Failure): boolean => kind === 'pullImage' || image !== undefined;

export function newPlan(observed: Observed, now: Millis): Plan {
  const actions: Action[] = [];
  const asked = new Set<string>();
  let wakeAt: Millis | undefined;
  const wake = (at: Millis): void => {
    if (at > now && (wakeAt === undefined || at < wakeAt)) wakeAt = at;
  };
  return {
    actions,
    get wakeAt() {
      return wakeAt;
    },
    wake,
    pending: (key) => observed.inFlight.has(key) || asked.has(key),
    act(action, dueAfter = (failure) => (isPull(action, failure) ? pullRetryAt : retryAt)(failure)) {
      const key = actionKey(action);
      if (observed.inFlight.has(key) || asked.has(key)) return;
      const failure = observed.failures[key];
      if (failure !== undefined && failure.due !== true) {
        const due = dueAfter(failure);
        if (due > now) return wake(due);
      }
      asked.add(key);
      actions.push(action);
    },
  };
}
