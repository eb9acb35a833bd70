/** What the worker of a Pod knows of its actions that failed, until they succeed. */
import type { Failure } from '../lifecycle/types.ts';
import type { Millis } from '../machinery/time.ts';

export interface WorkerFailures {
  /** By the key of the action. */
  readonly observed: Record<string, Failure>;
  succeeded(key: string): void;
  failed(key: string, error: unknown, at: Millis): Failure;
  /**
   * What the action fails for has changed: its last failure holds nothing back any more. Nor does that of a try under way,
   * which may have looked before the change.
   */
  retry(key: string, isUnderWay: boolean): void;
}

export function createWorkerFailures(): WorkerFailures {
  const observed: Record<string, Failure> = {};
  const retryWanted = new Set<string>();
  return {
    observed,
    succeeded(key) {
      delete observed[key];
      retryWanted.delete(key);
    },
    failed(key, error, at) {
      const failure = failureOf(error, observed[key], at);
      observed[key] = retryWanted.delete(key) ? { ...failure, due: true } : failure;
      return failure;
    },
    retry(key, isUnderWay) {
      if (isUnderWay) retryWanted.add(key);
      const failure = observed[key];
      if (failure !== undefined) observed[key] = { ...failure, due: true };
    },
  };
}

/** What the core is told of an action that failed once more. */
const failureOf = (error: unknown, before: Failure | undefined, at: Millis): Failure => ({
  at,
  count: (before?.count ?? 0) + 1,
  reason: error instanceof Error && 'reason' in error ? String(error.reason) : 'Error',
  message: error instanceof Error ? error.message : String(error),
  ...(error instanceof Error && 'image' in error ? { image: String(error.image) } : {}),
});
