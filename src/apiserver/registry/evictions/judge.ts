/**
 * Decides whether a Pod may be evicted now. Pure.
 * Source: pkg/registry/core/pod/storage/eviction.go of v1.33 (behavior and wording), except that a Pod whose defer containers run is
 * treated like a Pod that is being deleted: both already count as disrupted.
 */
import { hasEnded } from '../../../api/core/v1/pod/status/final-phase.ts';
import { isHealthy, isTerminating } from '../../../api/core/v1/pod/status/healthy.ts';
import type { Pod, PodDisruptionBudget } from '../../../api/generated/types.ts';
import {
  selectsPod,
  statusOf,
  withDisruptionAllowed,
} from '../../../api/policy/v1/pod-disruption-budget/budget-status.ts';
import { ApiError, forbidden } from '../../../machinery/status.ts';
import { formatTime, type Millis } from '../../../machinery/time.ts';

/** The limit on the evicted Pods of a budget that the disruption controller has not confirmed. Beyond it, the budget allows no eviction. */
const MAX_DISRUPTED_PODS = 2000;
const RETRY_SECONDS = 10;

export interface Verdict {
  /** The budget after the eviction; undefined if the eviction takes nothing from a budget. */
  charged?: PodDisruptionBudget;
  /** Whether the verdict ends with the next change of the Pod: a Pod that is not ready may become ready. */
  isProvisional: boolean;
  /** The error if the Pod changes before it is deleted. If absent, judge() decides again about the changed Pod. */
  ifChanged?: ApiError;
}

function refusal(cause: string, retryAfterSeconds?: number): ApiError {
  const causes = [{ reason: 'DisruptionBudget', message: cause }];
  return new ApiError({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: "Cannot evict pod as it would violate the pod's disruption budget.",
    reason: 'TooManyRequests',
    details: retryAfterSeconds === undefined ? { causes } : { causes, retryAfterSeconds },
    code: 429,
  });
}

const beingProcessed = (name: string): ApiError =>
  refusal(`The disruption budget ${name} is still being processed by the server.`, RETRY_SECONDS);

const severalBudgets = (): ApiError =>
  new ApiError({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: 'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.',
    code: 500,
  });

/**
 * `budgets`: the budgets in the Pod's namespace. Throws 429 TooManyRequests if the Pod's budget does not allow the eviction or the
 * controller has not processed it yet, 500 if several budgets select the Pod, and 403 Forbidden if the budget's status is not valid or has
 * too many disruptedPods.
 */
export function judge(pod: Pod, budgets: readonly PodDisruptionBudget[], now: Millis): Verdict {
  if (hasEnded(pod) || isTerminating(pod)) return { isProvisional: false };
  if (pod.status?.phase === 'Pending') return { isProvisional: true };
  const [budget, ...more] = budgets.filter((each) => selectsPod(each, pod));
  if (budget === undefined) return { isProvisional: false };
  if (more.length > 0) throw severalBudgets();
  if (!isHealthy(pod) && mayEvictUnhealthy(budget))
    return { isProvisional: true, ifChanged: beingProcessed(budget.metadata.name) };
  return { charged: charge(budget, pod, now), isProvisional: false };
}

function mayEvictUnhealthy(budget: PodDisruptionBudget): boolean {
  if (budget.spec?.unhealthyPodEvictionPolicy === 'AlwaysAllow') return true;
  const { currentHealthy, desiredHealthy } = statusOf(budget);
  return currentHealthy >= desiredHealthy && desiredHealthy > 0;
}

/** Throws 429 or 403 like judge(). */
function charge(budget: PodDisruptionBudget, pod: Pod, now: Millis): PodDisruptionBudget {
  const { name, generation = 0 } = budget.metadata;
  const status = statusOf(budget);
  const { disruptedPods = {}, disruptionsAllowed, desiredHealthy, currentHealthy, observedGeneration = 0 } = status;
  if (observedGeneration < generation) throw beingProcessed(name);
  const invalid = (cause: string): ApiError =>
    forbidden({ group: 'policy', resource: 'poddisruptionbudget' }, name, cause);
  if (disruptionsAllowed < 0) throw invalid('pdb disruptions allowed is negative');
  if (Object.keys(disruptedPods).length > MAX_DISRUPTED_PODS)
    throw invalid('DisruptedPods map too big - too many evictions not confirmed by PDB controller');
  if (disruptionsAllowed === 0) {
    throw refusal(
      `The disruption budget ${name} needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`,
    );
  }
  const left = {
    ...status,
    disruptionsAllowed: disruptionsAllowed - 1,
    disruptedPods: { ...disruptedPods, [pod.metadata.name]: formatTime(now) },
  };
  return { ...budget, status: left.disruptionsAllowed === 0 ? withDisruptionAllowed(left, now) : left };
}
