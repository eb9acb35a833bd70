/**
 * Computes the state on which a decision about a Job is based: its Pods, counts, indexes and back-off. The functions are pure. Source:
 * syncJob of pkg/controller/job/job_controller.go of v1.33 (behavior).
 */
import type { Job, JobSpec, JobStatus, Pod } from '../../api/generated/types.ts';
import { uidOf } from '../../machinery/meta.ts';
import type { Millis } from '../../machinery/time.ts';
import { isPodActive } from '../ownership/pod-state.ts';
import { afterPods, type BackOff, NO_FAILURES } from './back-off.ts';
import { matchFailurePolicy } from './failure-policy.ts';
import { hasIndex, type Intervals, parseIntervals, total, withIndexes } from './intervals.ts';
import { indexFailures, indexOf, isIndexed, isTracked, isValid, outcomeOf } from './job-pods.ts';
import { countedStatus } from './tracking.ts';

export interface JobInput {
  job: Job;
  pods: readonly Pod[];
  /** Undefined if this engine has not reconciled the Job yet. */
  backOff: BackOff | undefined;
  /** If false, the Job creates no Pods, but still counts the Pods that end. */
  mayCreate: boolean;
  now: Millis;
}

export interface JobView {
  job: Job;
  spec: JobSpec;
  /** The status of the Job, in which Pods that have lost their finalizers are already counted. */
  status: JobStatus;
  pods: readonly Pod[];
  active: readonly Pod[];
  /** Pods that count as succeeded or failed, but are not in the counters of the status and not in uncountedTerminatedPods. */
  newlyEnded: { succeeded: readonly Pod[]; failed: readonly Pod[] };
  uncounted: ReadonlySet<string>;
  /** Counts that include ended Pods that the status does not count yet. */
  succeeded: number;
  failed: number;
  /** Undefined unless the Job is indexed. */
  completedIndexes: Intervals | undefined;
  /** Undefined unless the Job limits failures per index. */
  failedIndexes: Intervals | undefined;
  backOff: BackOff;
  mayCreate: boolean;
  now: Millis;
}

export function viewOf({ job, pods, backOff, mayCreate, now }: JobInput): JobView {
  const spec = job.spec ?? { template: {} };
  const status = countedStatus(job.status ?? {}, pods);
  const { succeeded: waiting = [], failed: waitingFailed = [] } = status.uncountedTerminatedPods ?? {};
  const uncounted = new Set([...waiting, ...waitingFailed]);
  const isNew = (pod: Pod): boolean => isTracked(pod) && !uncounted.has(uidOf(pod)) && isValid(spec, pod);
  const ended = (outcome: string): Pod[] => pods.filter((pod) => isNew(pod) && outcomeOf(spec, pod) === outcome);
  const newlyEnded = { succeeded: ended('succeeded'), failed: ended('failed') };
  const completedIndexes = completedIndexesOf(spec, status, newlyEnded.succeeded);
  const counted = newlyEnded.failed.filter((pod) => matchFailurePolicy(spec, pod).isCounted);
  return {
    job,
    spec,
    status,
    pods,
    active: pods.filter(isPodActive),
    newlyEnded,
    uncounted,
    succeeded:
      completedIndexes === undefined
        ? (status.succeeded ?? 0) + newlyEnded.succeeded.length + waiting.length
        : total(completedIndexes),
    failed: (status.failed ?? 0) + counted.length + waitingFailed.length,
    completedIndexes,
    failedIndexes: failedIndexesOf(spec, status, pods, completedIndexes ?? []),
    backOff: nextBackOff(spec, pods, newlyEnded, backOff),
    mayCreate,
    now,
  };
}

export const indexesOf = (pods: readonly Pod[]): number[] => pods.flatMap((pod) => indexOf(pod) ?? []);

/** Adds the newly ended Pods to the back-off. A new engine computes the back-off from all ended Pods that still exist. */
function nextBackOff(
  spec: JobSpec,
  pods: readonly Pod[],
  { succeeded, failed }: JobView['newlyEnded'],
  known: BackOff | undefined,
): BackOff {
  if (known !== undefined) return afterPods(known, succeeded, failed);
  const all = Map.groupBy(pods, (pod) => outcomeOf(spec, pod));
  return afterPods(NO_FAILURES, all.get('succeeded') ?? [], all.get('failed') ?? []);
}

/**
 * Returns the completed indexes, including the indexes of newly succeeded Pods; undefined unless the Job is indexed. A failed index stays
 * failed, even if another Pod of the index succeeds.
 */
function completedIndexesOf(spec: JobSpec, status: JobStatus, succeeded: readonly Pod[]): Intervals | undefined {
  if (!isIndexed(spec)) return undefined;
  const [completed, failed] = [status.completedIndexes, status.failedIndexes].map((text) =>
    parseIntervals(text, spec.completions ?? 0),
  ) as [Intervals, Intervals];
  return withIndexes(
    completed,
    indexesOf(succeeded).filter((index) => !hasIndex(failed, index)),
  );
}

function failedIndexesOf(
  spec: JobSpec,
  { failedIndexes }: JobStatus,
  pods: readonly Pod[],
  completed: Intervals,
): Intervals | undefined {
  const limit = spec.backoffLimitPerIndex;
  if (!isIndexed(spec) || limit === undefined) return undefined;
  const isLast = (pod: Pod): boolean => {
    if (!isTracked(pod) || !isValid(spec, pod) || outcomeOf(spec, pod) !== 'failed') return false;
    const { action, isCounted } = matchFailurePolicy(spec, pod);
    return action === 'FailIndex' || (isCounted && indexFailures(pod).counted >= limit);
  };
  return withIndexes(
    parseIntervals(failedIndexes, spec.completions ?? 0),
    indexesOf(pods.filter(isLast)).filter((index) => !hasIndex(completed, index)),
  );
}
