/**
 * Computes how long a Job waits after failed Pods before it creates new ones: 10 s after the first failure, then twice as long for each
 * further one, up to 6 minutes. A Pod that succeeds ends the back-off. The functions are pure.
 * Source: pkg/controller/job/backoff_utils.go of v1.33 (behavior); "Jobs" of the v1.33 documentation, "Pod backoff failure policy" (the
 * maximum).
 */
import type { Pod } from '../../api/generated/types.ts';
import type { Millis } from '../../machinery/time.ts';
import { finishedAt, indexFailures } from './job-pods.ts';

const BASE_MILLIS = 10_000;
const MAX_MILLIS = 6 * 60_000;

/** The failures of a Job since its last success. */
export interface BackOff {
  failures: number;
  lastFailure: Millis;
}

export const NO_FAILURES: BackOff = { failures: 0, lastFailure: 0 };

/** Adds Pods that have ended since `before` was computed. If one has succeeded, only the failures after the last success count. */
export function afterPods(before: BackOff, succeeded: readonly Pod[], failed: readonly Pod[]): BackOff {
  const isReset = succeeded.length > 0;
  const lastSuccess = isReset ? Math.max(...succeeded.map(finishedAt)) : Number.NEGATIVE_INFINITY;
  const failures = failed.map(finishedAt).filter((at) => at > lastSuccess);
  if (failures.length === 0) return isReset ? NO_FAILURES : before;
  const { failures: count, lastFailure } = isReset ? NO_FAILURES : before;
  return { failures: count + failures.length, lastFailure: Math.max(lastFailure, ...failures) };
}

/** Returns when new Pods may be created; 0 without failures. */
export const retryAt = ({ failures, lastFailure }: BackOff): Millis =>
  failures === 0 ? 0 : lastFailure + Math.min(BASE_MILLIS * 2 ** (failures - 1), MAX_MILLIS);

export function indexRetryAt(failed: Pod): Millis {
  const { counted, ignored } = indexFailures(failed);
  return retryAt({ failures: counted + ignored + 1, lastFailure: finishedAt(failed) });
}
