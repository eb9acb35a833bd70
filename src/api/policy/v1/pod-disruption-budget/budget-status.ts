/**
 * Reads and changes the status of a PodDisruptionBudget, and decides which Pods it selects.
 * Source: k8s.io/component-helpers/apps/poddisruptionbudget and SetStatusCondition of k8s.io/apimachinery/pkg/api/meta of v1.33 (behavior).
 */
import { type LabelMatcher, labelSelectorMatcher } from '../../../../machinery/labels.ts';
import { formatTime, type Millis } from '../../../../machinery/time.ts';
import type { Condition, Pod, PodDisruptionBudget, PodDisruptionBudgetStatus } from '../../../generated/types.ts';

const matchers = new WeakMap<PodDisruptionBudget, LabelMatcher>();

/** An absent selector selects no Pods, and an empty one all Pods of the namespace. */
export function selectsPod(budget: PodDisruptionBudget, { metadata }: Pod): boolean {
  if (budget.metadata.namespace !== metadata.namespace) return false;
  let matches = matchers.get(budget);
  if (matches === undefined) {
    matches = labelSelectorMatcher(budget.spec?.selector);
    matchers.set(budget, matches);
  }
  return matches(metadata.labels);
}

/** Returns zeros if the disruption controller has not written the status yet. */
export const statusOf = ({ status }: PodDisruptionBudget): PodDisruptionBudgetStatus =>
  status ?? { disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 };

const TYPE = 'DisruptionAllowed';

function withCondition(
  status: PodDisruptionBudgetStatus,
  given: Pick<Condition, 'status' | 'reason' | 'message'>,
  now: Millis,
): PodDisruptionBudgetStatus {
  const { conditions = [], observedGeneration } = status;
  const old = conditions.find(({ type }) => type === TYPE);
  const isSame = old !== undefined && old.status === given.status;
  const condition: Condition = {
    type: TYPE,
    ...given,
    ...(observedGeneration === undefined ? {} : { observedGeneration }),
    lastTransitionTime: isSame ? old.lastTransitionTime : formatTime(now),
  };
  const others = conditions.filter(({ type }) => type !== TYPE);
  return { ...status, conditions: [...others, condition] };
}

export const withDisruptionAllowed = (status: PodDisruptionBudgetStatus, now: Millis): PodDisruptionBudgetStatus =>
  withCondition(
    status,
    status.disruptionsAllowed > 0
      ? { status: 'True', reason: 'SufficientPods', message: '' }
      : { status: 'False', reason: 'InsufficientPods', message: '' },
    now,
  );

/** Returns a status that allows no disruptions, for a budget whose status could not be computed. `message`: the cause. */
export const withSyncFailed = (
  status: PodDisruptionBudgetStatus,
  message: string,
  now: Millis,
): PodDisruptionBudgetStatus =>
  withCondition({ ...status, disruptionsAllowed: 0 }, { status: 'False', reason: 'SyncFailed', message }, now);
