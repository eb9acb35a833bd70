/**
 * Computes the conditions of a Deployment. The functions are pure.
 * Source: SetDeploymentCondition and NewDeploymentCondition of pkg/controller/deployment/util/deployment_util.go of v1.33 (behavior).
 */
import type { Deployment, DeploymentCondition } from '../../api/generated/types.ts';
import { formatTime, type Millis } from '../../machinery/time.ts';

export type Conditions = readonly DeploymentCondition[];
export type ConditionDraft = Pick<DeploymentCondition, 'type' | 'status' | 'reason' | 'message'>;

export const NEW_AVAILABLE = 'NewReplicaSetAvailable';
export const TIMED_OUT = 'ProgressDeadlineExceeded';
const PAUSED = 'DeploymentPaused';
/** The progressDeadlineSeconds that means "no deadline". Source: HasProgressDeadline. */
const NO_DEADLINE = 2 ** 31 - 1;

export const conditionOf = (conditions: Conditions, type: string): DeploymentCondition | undefined =>
  conditions.find((condition) => condition.type === type);

export const without = (conditions: Conditions, type: string): Conditions =>
  conditions.filter((condition) => condition.type !== type);

/**
 * Adds or replaces the condition. A condition with the same status and reason remains unchanged. If only the status is the same,
 * lastTransitionTime is kept.
 */
export function withCondition(conditions: Conditions, draft: ConditionDraft, now: Millis): Conditions {
  const before = conditionOf(conditions, draft.type);
  if (before?.status === draft.status && before.reason === draft.reason) return conditions;
  const time = formatTime(now);
  const lastTransitionTime = before?.status === draft.status ? (before.lastTransitionTime ?? time) : time;
  return [...without(conditions, draft.type), { ...draft, lastUpdateTime: time, lastTransitionTime }];
}

export const progressing = (status: 'True' | 'False' | 'Unknown', reason: string, message: string): ConditionDraft => ({
  type: 'Progressing',
  status,
  reason,
  message,
});

/** Returns the progress deadline in seconds; undefined if there is none. */
export function deadlineOf({ spec }: Deployment): number | undefined {
  const seconds = spec?.progressDeadlineSeconds;
  return seconds === undefined || seconds === NO_DEADLINE ? undefined : seconds;
}

/** Records in the condition Progressing that the Deployment is paused or was resumed, so that the deadline counts from the resumption. */
export function withPause(conditions: Conditions, deployment: Deployment, now: Millis): Conditions {
  const before = conditionOf(conditions, 'Progressing');
  if (deadlineOf(deployment) === undefined || before?.reason === TIMED_OUT) return conditions;
  const isPaused = deployment.spec?.paused === true;
  if (isPaused === (before?.reason === PAUSED)) return conditions;
  const draft = isPaused
    ? progressing('Unknown', PAUSED, 'Deployment is paused')
    : progressing('Unknown', 'DeploymentResumed', 'Deployment is resumed');
  return withCondition(conditions, draft, now);
}
