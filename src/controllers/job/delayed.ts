/**
 * Finds the failed Pods of a Job with backoffLimitPerIndex that must remain until their replacements exist. Reason: the annotations of a
 * replacement continue the failure count of the replaced Pod. The functions are pure. Source: getPodsWithDelayedDeletionPerIndex of
 * pkg/controller/job/indexed_job_utils.go of v1.33 (behavior).
 */
import type { Pod } from '../../api/generated/types.ts';
import { hasIndex } from './intervals.ts';
import { finishedAt, indexFailures, indexOf, isTracked, isValid, outcomeOf } from './job-pods.ts';
import { indexesOf, type JobView } from './view.ts';

/** Returns, by index, the last failed Pod of each index that will get a replacement. */
export function delayedPods(view: JobView): Map<number, Pod> {
  const { spec, pods, active, completedIndexes = [], failedIndexes } = view;
  const result = new Map<number, Pod>();
  if (failedIndexes === undefined) return result;
  const activeIndexes = new Set(indexesOf(active));
  for (const pod of pods) {
    const index = indexOf(pod);
    if (index === undefined || !isTracked(pod) || !isValid(spec, pod) || outcomeOf(spec, pod) !== 'failed') continue;
    if (activeIndexes.has(index) || hasIndex(completedIndexes, index) || hasIndex(failedIndexes, index)) continue;
    const other = result.get(index);
    if (other === undefined || isLater(pod, other)) result.set(index, pod);
  }
  return result;
}

const failuresOf = (pod: Pod): number => {
  const { counted, ignored } = indexFailures(pod);
  return counted + ignored;
};

const isLater = (pod: Pod, other: Pod): boolean =>
  failuresOf(pod) >= failuresOf(other) && finishedAt(pod) >= finishedAt(other);
