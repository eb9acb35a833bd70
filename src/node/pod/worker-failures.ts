/** What the worker of a Pod knows about its actions that failed, until they succeed. */
import { type Action, actionKey, type FailedAction } from '../../lifecycle/types.ts';
import type { Millis } from '../../machinery/time.ts';

export interface WorkerFailures {
  observed(): FailedAction[];
  /** `key`: as actionKey() makes it. */
  succeeded(key: string): void;
  failed(action: Action, error: unknown, at: Millis): FailedAction;
  /** The runtime did not answer: the action is neither done nor has it failed. */
  unanswered(action: Action, error: Error, at: Millis): void;
  /**
   * The cause of the action's failure has changed: its last failure holds nothing back any more. Nor does that of a try under way,
   * which may have looked before the change.
   */
  retry(key: string, isUnderWay: boolean): void;
}

export function createWorkerFailures(): WorkerFailures {
  const observed = new Map<string, FailedAction>();
  const retryWanted = new Set<string>();
  return {
    observed: () => [...observed.values()],
    succeeded(key) {
      observed.delete(key);
      retryWanted.delete(key);
    },
    failed(action, error, at) {
      const key = actionKey(action);
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
  message: error instanceof Error ? error.message : String(error),
  ...(error instanceof Error && 'image' in error ? { image: String(error.image) } : {}),
});
