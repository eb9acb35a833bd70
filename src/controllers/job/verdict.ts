/**
 * Decides whether a Job ends, and why. The functions are pure. Source: syncJob of pkg/controller/job/job_controller.go, and
 * success_policy.go, of v1.33 (behavior and wording).
 */

import { hasEnded } from '../../api/core/v1/pod/status/final-phase.ts';
import type { JobSpec, Pod } from '../../api/generated/types.ts';
import { type Millis, parseTime } from '../../machinery/time.ts';
import { failure, storedVerdict, success, type Verdict } from './conditions.ts';
import { matchFailurePolicy } from './failure-policy.ts';
import { countCommon, type Intervals, parseIntervals, total } from './intervals.ts';
import { outcomeOf } from './job-pods.ts';
import type { JobView } from './view.ts';

/** Returns why the Job ends; undefined if it does not. Pods may still be active. A Job keeps its first verdict. */
export function verdictOf(view: JobView): Verdict | undefined {
  const { job, spec } = view;
  const stored = storedVerdict(job);
  if (stored !== undefined) return stored;
  const message = failJobMessage(view);
  if (message !== undefined) return failure('PodFailurePolicy', message);
  if (view.failed > (spec.backoffLimit ?? 0) || isPastRestarts(view))
    return failure('BackoffLimitExceeded', 'Job has reached the specified backoff limit');
  if ((deadlineOf(view) ?? Number.POSITIVE_INFINITY) <= view.now)
    return failure('DeadlineExceeded', 'Job was active longer than specified deadline');
  return indexVerdict(view);
}

/** Returns when activeDeadlineSeconds ends; undefined if the Job has no deadline, is suspended or has not started. */
export function deadlineOf({ spec, status }: JobView): Millis | undefined {
  const start = parseTime(status.startTime);
  if (spec.activeDeadlineSeconds === undefined || spec.suspend === true || start === undefined) return undefined;
  return start + spec.activeDeadlineSeconds * 1000;
}

function failJobMessage({ spec, pods }: JobView): string | undefined {
  if (spec.podFailurePolicy === undefined) return undefined;
  for (const pod of pods) {
    const message = outcomeOf(spec, pod) === 'failed' ? matchFailurePolicy(spec, pod).message : undefined;
    if (message !== undefined) return message;
  }
  return undefined;
}

/**
 * Whether the containers of Pods that have not ended reached the limit of restarts. Applies only to restartPolicy OnFailure. A backoffLimit
 * of 0 permits no restart.
 */
function isPastRestarts({ spec, pods }: JobView): boolean {
  if (spec.template?.spec?.restartPolicy !== 'OnFailure') return false;
  const limit = spec.backoffLimit ?? 0;
  const restarts = pods.filter((pod) => !hasEnded(pod)).reduce((sum, pod) => sum + restartsOf(pod), 0);
  return limit === 0 ? restarts > 0 : restarts >= limit;
}

const restartsOf = ({ status }: Pod): number =>
  [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])].reduce(
    (sum, { restartCount }) => sum + restartCount,
    0,
  );

function indexVerdict({ spec, completedIndexes, failedIndexes }: JobView): Verdict | undefined {
  if (completedIndexes === undefined) return undefined;
  const [completed, failed] = [total(completedIndexes), total(failedIndexes ?? [])];
  if (failedIndexes !== undefined && failed > (spec.maxFailedIndexes ?? Number.POSITIVE_INFINITY)) {
    const text = 'Job has exceeded the specified maximal number of failed indexes';
    return failure('MaxFailedIndexesExceeded', text);
  }
  if (failed > 0 && failed + completed >= (spec.completions ?? 0))
    return failure('FailedIndexes', 'Job has failed indexes');
  const rule = matchedRule(spec, completedIndexes);
  return rule === undefined ? undefined : success('SuccessPolicy', `Matched rules at index ${rule}`);
}

function matchedRule({ successPolicy, completions = 0 }: JobSpec, completed: Intervals): number | undefined {
  if (completed.length === 0) return undefined;
  const position = (successPolicy?.rules ?? []).findIndex(({ succeededIndexes, succeededCount }) => {
    if (succeededIndexes === undefined) return succeededCount !== undefined && total(completed) >= succeededCount;
    const required = parseIntervals(succeededIndexes, completions);
    if (required.length === 0) return false;
    const common = countCommon(required, completed);
    return common === total(required) || (succeededCount !== undefined && common >= succeededCount);
  });
  return position < 0 ? undefined : position;
}
