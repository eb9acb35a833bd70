import { type Action, actionKey, type FailedAction } from '../../../lifecycle/types.ts';
import type { Millis } from '../../../machinery/time.ts';
import { messageOf } from '../action-error.ts';

export interface WorkerFailures {
  observed(): FailedAction[];
  succeeded(action: Action): void;
  failed(action: Action, error: unknown, at: Millis): FailedAction;
  unanswered(action: Action, error: Error, at: Millis): void;
  /**
   * Called when the cause of the action's failure has changed. The last failure no longer causes back-off. The failure of an attempt under
   * way does not either, since the attempt may have started before the change. `key`: from actionKey().
   */
  retry(key: string, isUnderWay: boolean): void;
}

export function createWorkerFailures(): WorkerFailures {
  const observed = new Map<string, FailedAction>();
  const retryWanted = new Set<string>();
  /**
   * The failures of earlier attempts must not be reported again after the runs of the later attempts were removed. Starts with an unknown
   * outcome are kept.
   */
  const forgetEarlierStarts = (later: Action): void => {
    if (later.kind !== 'startContainer') return;
    for (const [key, { action, unknown }] of observed) {
      const isOfContainer = action.kind === 'startContainer' && action.container === later.container;
      if (!unknown && isOfContainer && action.attempt < later.attempt) observed.delete(key);
    }
  };
  return {
    observed: () => [...observed.values()],
    succeeded(action) {
      const key = actionKey(action);
      observed.delete(key);
      retryWanted.delete(key);
      forgetEarlierStarts(action);
    },
    failed(action, error, at) {
      const key = actionKey(action);
      forgetEarlierStarts(action);
      const failure = failureOf(action, error, observed.get(key), at);
      observed.set(key, retryWanted.delete(key) ? { ...failure, due: true } : failure);
      return failure;
    },
    unanswered(action, error, at) {
      const key = actionKey(action);
      observed.set(key, { ...failureOf(action, error, observed.get(key), at), unknown: true });
    },
    retry(key, isUnderWay) {
      if (isUnderWay) retryWanted.add(key);
      const failure = observed.get(key);
      if (failure !== undefined) observed.set(key, { ...failure, due: true });
    },
  };
}

const failureOf = (action: Action, error: unknown, before: FailedAction | undefined, at: Millis): FailedAction => ({
  action,
  at,
  count: (before?.count ?? 0) + 1,
  reason: error instanceof Error && 'reason' in error ? String(error.reason) : 'Error',
  message: messageOf(error),
  ...(error instanceof Error && 'image' in error ? { image: String(error.image) } : {}),
});
