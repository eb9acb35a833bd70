/**
 * Computes the status of a Deployment: the counts of Pods, and whether the rollout is complete, progresses or has timed out. The functions
 * are pure.
 * Source: pkg/controller/deployment/progress.go and calculateStatus of sync.go of v1.33 (behavior and wording).
 */
import type { Deployment, DeploymentStatus, ReplicaSet } from '../../api/generated/types.ts';
import { defined } from '../../machinery/drop-undefined.ts';
import { type Millis, parseTime } from '../../machinery/time.ts';
import {
  type Conditions,
  conditionOf,
  deadlineOf,
  NEW_AVAILABLE,
  progressing,
  TIMED_OUT,
  withCondition,
  without,
} from './conditions.ts';
import { allOf, maxUnavailable, type Rollout, sizeOf, total, wanted } from './rollout.ts';

type Counts = Omit<DeploymentStatus, 'conditions'>;

export function countsOf(rollout: Rollout): Counts {
  const { deployment, current } = rollout;
  const sets = allOf(rollout);
  const available = total(sets, ({ status }) => status?.availableReplicas);
  return {
    observedGeneration: deployment.metadata.generation ?? 0,
    replicas: total(sets, ({ status }) => status?.replicas),
    updatedReplicas: current?.status?.replicas ?? 0,
    readyReplicas: total(sets, ({ status }) => status?.readyReplicas),
    availableReplicas: available,
    unavailableReplicas: Math.max(0, total(sets, sizeOf) - available),
    ...defined({ collisionCount: deployment.status?.collisionCount }),
  };
}

/**
 * Whether all Pods are available and have the current template, and the counts are from the current generation.
 * Source: DeploymentComplete.
 */
export function isComplete(deployment: Deployment, counts: Counts): boolean {
  const replicas = wanted(deployment);
  return (
    (counts.updatedReplicas ?? 0) === replicas &&
    (counts.replicas ?? 0) === replicas &&
    (counts.availableReplicas ?? 0) === replicas &&
    (counts.observedGeneration ?? 0) >= (deployment.metadata.generation ?? 0)
  );
}

function withAvailability(conditions: Conditions, { deployment }: Rollout, counts: Counts, now: Millis): Conditions {
  const isAvailable = (counts.availableReplicas ?? 0) >= wanted(deployment) - maxUnavailable(deployment);
  const draft = isAvailable
    ? { status: 'True', reason: 'MinimumReplicasAvailable', message: 'Deployment has minimum availability.' }
    : {
        status: 'False',
        reason: 'MinimumReplicasUnavailable',
        message: 'Deployment does not have minimum availability.',
      };
  return withCondition(conditions, { type: 'Available', ...draft }, now);
}

/** Computes the status of a Deployment that is paused, scaled or deleted. Leaves the condition Progressing unchanged. */
export function scalingStatus(rollout: Rollout, conditions: Conditions, now: Millis): DeploymentStatus {
  const counts = countsOf(rollout);
  return statusOf(counts, withAvailability(conditions, rollout, counts, now));
}

/** Omits counts that are 0, as omitempty does upstream. */
function statusOf(counts: Counts, conditions: Conditions): DeploymentStatus {
  const { observedGeneration, ...rest } = counts;
  const present = Object.fromEntries(Object.entries(rest).filter(([, count]) => count !== 0));
  return { observedGeneration, ...present, conditions: [...conditions] };
}

export interface RolloutStatus {
  status: DeploymentStatus;
  /** When the deadline passes without progress; undefined if no deadline is pending. */
  deadline: Millis | undefined;
}

export function rolloutStatus(rollout: Rollout, before: Conditions, now: Millis): RolloutStatus {
  const { deployment } = rollout;
  const counts = countsOf(rollout);
  let conditions = withAvailability(before, rollout, counts, now);
  conditions = withProgress(conditions, rollout, counts, now);
  conditions = withFailure(conditions, rollout, now);
  return { status: statusOf(counts, conditions), deadline: deadlineAt(deployment, conditions, counts) };
}

function withProgress(
  conditions: Conditions,
  { deployment, current }: Rollout,
  counts: Counts,
  now: Millis,
): Conditions {
  if (deadlineOf(deployment) === undefined) return without(conditions, 'Progressing');
  const before = conditionOf(conditions, 'Progressing');
  if (counts.replicas === counts.updatedReplicas && before?.reason === NEW_AVAILABLE) return conditions;
  const subject =
    current === undefined ? `Deployment "${deployment.metadata.name}"` : `ReplicaSet "${current.metadata.name}"`;
  if (isComplete(deployment, counts))
    return withCondition(
      conditions,
      progressing('True', NEW_AVAILABLE, `${subject} has successfully progressed.`),
      now,
    );
  if (hasProgressed(deployment.status ?? {}, counts)) {
    // Every progress sets lastUpdateTime, because the deadline counts from the last progress.
    const draft = progressing('True', 'ReplicaSetUpdated', `${subject} is progressing.`);
    const [added] = withCondition([], draft, now);
    if (added === undefined) return conditions;
    const { lastTransitionTime } = before?.status === 'True' ? before : added;
    return [...without(conditions, 'Progressing'), { ...added, lastTransitionTime: lastTransitionTime ?? '' }];
  }
  if (!isTimedOut(deployment, conditions, now)) return conditions;
  return withCondition(conditions, progressing('False', TIMED_OUT, `${subject} has timed out progressing.`), now);
}

/** Whether there are more new, fewer old, more ready or more available Pods than before. Source: DeploymentProgressing. */
function hasProgressed(before: Counts, now: Counts): boolean {
  const oldPods = ({ replicas = 0, updatedReplicas = 0 }: Counts): number => replicas - updatedReplicas;
  return (
    (now.updatedReplicas ?? 0) > (before.updatedReplicas ?? 0) ||
    oldPods(now) < oldPods(before) ||
    (now.readyReplicas ?? 0) > (before.readyReplicas ?? 0) ||
    (now.availableReplicas ?? 0) > (before.availableReplicas ?? 0)
  );
}

function deadlineAt(deployment: Deployment, conditions: Conditions, counts: Counts): Millis | undefined {
  const seconds = deadlineOf(deployment);
  const condition = conditionOf(conditions, 'Progressing');
  if (seconds === undefined || condition === undefined || isComplete(deployment, counts)) return undefined;
  if (condition.reason === TIMED_OUT || condition.reason === NEW_AVAILABLE) return undefined;
  return (parseTime(condition.lastUpdateTime) ?? 0) + seconds * 1000;
}

function isTimedOut(deployment: Deployment, conditions: Conditions, now: Millis): boolean {
  const condition = conditionOf(conditions, 'Progressing');
  if (condition === undefined || condition.reason === NEW_AVAILABLE) return false;
  if (condition.reason === TIMED_OUT) return true;
  return (parseTime(condition.lastUpdateTime) ?? 0) + (deadlineOf(deployment) ?? 0) * 1000 <= now;
}

function withFailure(conditions: Conditions, { current, old }: Rollout, now: Millis): Conditions {
  const failureOf = (set: ReplicaSet | undefined) =>
    set?.status?.conditions?.find(({ type, status }) => type === 'ReplicaFailure' && status === 'True');
  const failure = failureOf(current) ?? old.map(failureOf).find((found) => found !== undefined);
  if (failure === undefined) return without(conditions, 'ReplicaFailure');
  const { reason = '', message = '', lastTransitionTime } = failure;
  const draft = { type: 'ReplicaFailure', status: 'True', reason, message };
  return withCondition(conditions, draft, parseTime(lastTransitionTime) ?? now);
}
