/**
 * Counts each Pod exactly once, although the engine can be killed between any two writes. The functions are pure.
 *
 * First, the UID of an ended Pod is written to status.uncountedTerminatedPods. Then the finalizer of the Pod is removed. The next write of
 * the status removes the UID and increments the counter. Therefore a Pod with a finalizer has not been counted, and a UID must be counted
 * when no Pod with a finalizer has it. In an indexed Job, a success uses completedIndexes instead of the UID.
 * Source: trackJobStatusAndRemoveFinalizers of pkg/controller/job/job_controller.go of v1.33 (protocol).
 */

import { hasEnded } from '../../api/core/v1/pod/status/final-phase.ts';
import type { JobStatus, Pod } from '../../api/generated/types.ts';
import { defined } from '../../machinery/drop-undefined.ts';
import { uidOf } from '../../machinery/meta.ts';
import type { DeletionReason } from '../ownership/pods-of-owner.ts';
import type { Verdict } from './conditions.ts';
import { matchFailurePolicy } from './failure-policy.ts';
import { formatIntervals, total } from './intervals.ts';
import { isEndedByJob, isIndexed, isTracked, isValid, outcomeOf } from './job-pods.ts';
import type { JobView } from './view.ts';

/** The maximum number of Pods whose finalizers one decision removes. Source: MaxUncountedPods of pkg/controller/job. */
export const MAX_UNCOUNTED = 500;

/** Counts the Pods of uncountedTerminatedPods that no longer have a finalizer. */
export function countedStatus(status: JobStatus, pods: readonly Pod[]): JobStatus {
  const { succeeded = [], failed = [] } = status.uncountedTerminatedPods ?? {};
  const tracked = new Set(pods.filter(isTracked).map(uidOf));
  const left = {
    succeeded: succeeded.filter((uid) => tracked.has(uid)),
    failed: failed.filter((uid) => tracked.has(uid)),
  };
  return {
    ...status,
    succeeded: (status.succeeded ?? 0) + succeeded.length - left.succeeded.length,
    failed: (status.failed ?? 0) + failed.length - left.failed.length,
    uncountedTerminatedPods: uncountedOf(left.succeeded, left.failed),
  };
}

const uncountedOf = (succeeded: string[], failed: string[]): JobStatus['uncountedTerminatedPods'] =>
  defined({
    succeeded: succeeded.length > 0 ? succeeded : undefined,
    failed: failed.length > 0 ? failed : undefined,
  });

export interface Tracking {
  status: JobStatus;
  untrack: readonly Pod[];
}

/**
 * Decides which Pods are counted next. `verdict`: why the Job ends; undefined if it does not. `deletion`: why this decision deletes active
 * Pods. `delayed`: failed Pods that remain until their replacements exist.
 */
export function track(
  view: JobView,
  verdict: Verdict | undefined,
  deletion: DeletionReason,
  delayed: ReadonlySet<Pod>,
): Tracking {
  const { spec, status, job, uncounted } = view;
  const succeeded = [...(status.uncountedTerminatedPods?.succeeded ?? [])];
  const failed = [...(status.uncountedTerminatedPods?.failed ?? [])];
  const isFailing = verdict?.type === 'FailureTarget';
  const hasSucceeded = verdict?.type === 'SuccessCriteriaMet';
  const isDeleted = job.metadata.deletionTimestamp !== undefined;
  const isKnown = (pod: Pod): boolean => uncounted.has(uidOf(pod));
  const tracked = view.pods.filter(isTracked);
  const untrack: Pod[] = [];
  for (const pod of [...tracked.filter(isKnown), ...tracked.filter((each) => !isKnown(each))]) {
    if (untrack.length >= MAX_UNCOUNTED) break;
    const outcome = outcomeOf(spec, pod, isFailing);
    // Pods that a Job deletes because it has succeeded do not count.
    const endsNow = pod.metadata.deletionTimestamp === undefined && deletion !== 'ScaledDown';
    const isOwnDeletion = hasSucceeded && (endsNow || isEndedByJob(pod));
    if (outcome === undefined && !isDeleted && !isOwnDeletion) continue;
    if (delayed.has(pod) && !isDeleted && verdict === undefined) continue;
    untrack.push(pod);
    if (isKnown(pod) || !isValid(spec, pod)) continue;
    if (isOwnDeletion && (!hasEnded(pod) || isEndedByJob(pod))) continue;
    if (outcome === 'succeeded' && !isIndexed(spec)) succeeded.push(uidOf(pod));
    if (outcome === 'failed' && matchFailurePolicy(spec, pod).isCounted) failed.push(uidOf(pod));
  }
  const { completedIndexes } = view;
  return {
    untrack,
    status: {
      ...status,
      ...(completedIndexes === undefined
        ? {}
        : { succeeded: total(completedIndexes), completedIndexes: formatIntervals(completedIndexes) }),
      ...(view.failedIndexes === undefined ? {} : { failedIndexes: formatIntervals(view.failedIndexes) }),
      uncountedTerminatedPods: uncountedOf(succeeded, failed),
    },
  };
}
