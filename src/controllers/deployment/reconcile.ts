/**
 * Decides which ReplicaSets of a Deployment to create, scale, annotate and delete, and computes its status. The functions are pure.
 *
 * Each decision makes one step, in the order of upstream's syncDeployment. The writes to the ReplicaSets cause the next decision. A
 * decision depends only on the objects, so after a crash the next engine completes the step.
 * Source: pkg/controller/deployment/deployment_controller.go, recreate.go and rolling.go of v1.33 (behavior).
 */

import { hasEnded } from '../../api/core/v1/pod/status/final-phase.ts';
import type { Deployment, DeploymentStatus, Pod, ReplicaSet } from '../../api/generated/types.ts';
import type { Millis } from '../../machinery/time.ts';
import { type Conditions, conditionOf, deadlineOf, progressing, withCondition, withPause } from './conditions.ts';
import { isScaling, scalingStep } from './proportional.ts';
import { newReplicaSet, nextRevision, obsolete, revisionOf, rolloutOf, withSyncedCurrent } from './revisions.ts';
import { rollingStep } from './rolling-update.ts';
import { allOf, isRolling, type Rollout, scaled, total, wanted } from './rollout.ts';
import { countsOf, isComplete, rolloutStatus, scalingStatus } from './status.ts';

export interface DeploymentInput {
  deployment: Deployment;
  replicaSets: readonly ReplicaSet[];
  podsOf(set: ReplicaSet): Iterable<Pod>;
  now: Millis;
}

export interface Change {
  from: ReplicaSet;
  to: ReplicaSet;
}

export interface Decision {
  /** The current ReplicaSet, if it does not exist yet. */
  create?: ReplicaSet;
  changes: Change[];
  remove: ReplicaSet[];
  /** The revision for the annotation of the Deployment; undefined if no revision is known. */
  revision: number | undefined;
  status: DeploymentStatus;
  /** When the progress deadline passes, so that the Deployment must be reconciled again; undefined if no deadline is pending. */
  checkAt?: Millis | undefined;
}

export function reconcile({ deployment, replicaSets, podsOf, now }: DeploymentInput): Decision {
  const rollout = rolloutOf(deployment, replicaSets);
  if (deployment.metadata.deletionTimestamp !== undefined) return statusOnly(rollout, now);
  const conditions = withPause(deployment.status?.conditions ?? [], deployment, now);
  const synced = withSyncedCurrent(rollout);
  const isPaused = deployment.spec?.paused === true;
  const after = isPaused || isScaling(synced) ? scalingStep(synced) : synced;
  // With the strategy Recreate, scalingStep() does not scale several active ReplicaSets. They must not block the rollout.
  if (isPaused || after !== synced) {
    const remove = isPaused ? obsolete(after) : [];
    return { ...decision(rollout, after), remove, status: scalingStatus(after, conditions, now) };
  }
  return isRolling(deployment)
    ? rollingDecision(rollout, synced, conditions, now)
    : recreateDecision(rollout, synced, conditions, podsOf, now);
}

const decision = (before: Rollout, after: Rollout): Pick<Decision, 'changes' | 'remove' | 'revision'> => {
  const earlier = new Map(allOf(before).map((set) => [set.metadata.name, set]));
  const changes = allOf(after).flatMap((to) => {
    const from = earlier.get(to.metadata.name);
    return from === undefined || from === to ? [] : [{ from, to }];
  });
  return { changes, remove: [], revision: after.current && revisionOf(after.current) };
};

/** Decides for a Deployment that is being deleted. Its ReplicaSets do not change: the garbage collector deletes them. */
function statusOnly(rollout: Rollout, now: Millis): Decision {
  const { deployment } = rollout;
  const revision = revisionOf(deployment) || undefined;
  const status = scalingStatus(rollout, deployment.status?.conditions ?? [], now);
  return { changes: [], remove: [], revision, status };
}

function rollingDecision(before: Rollout, synced: Rollout, conditions: Conditions, now: Millis): Decision {
  if (synced.current === undefined) return creation(before, synced, conditions, now);
  return step(before, synced, rollingStep(synced), conditions, now);
}

function recreateDecision(
  before: Rollout,
  synced: Rollout,
  conditions: Conditions,
  podsOf: DeploymentInput['podsOf'],
  now: Millis,
): Decision {
  const { deployment, current, old } = synced;
  const emptied = old.map((set) => scaled(set, 0, deployment));
  if (emptied.some((set, index) => set !== old[index]))
    return step(before, synced, { ...synced, old: emptied }, conditions, now);
  const isRunning = total(old, ({ status }) => status?.replicas) > 0 || old.some((set) => !hasEndedPods(podsOf(set)));
  if (isRunning) return step(before, synced, synced, conditions, now);
  if (current === undefined) return creation(before, synced, conditions, now);
  return step(before, synced, { ...synced, current: scaled(current, wanted(deployment), deployment) }, conditions, now);
}

const hasEndedPods = (pods: Iterable<Pod>): boolean => [...pods].every(hasEnded);

function creation(before: Rollout, rollout: Rollout, conditions: Conditions, now: Millis): Decision {
  const create = newReplicaSet(rollout);
  const message = `Created new replica set "${create.metadata.name}"`;
  const shown =
    deadlineOf(rollout.deployment) === undefined
      ? conditions
      : withCondition(conditions, progressing('True', 'NewReplicaSetCreated', message), now);
  const { status, deadline } = rolloutStatus({ ...rollout, current: create }, shown, now);
  return { ...decision(before, rollout), create, revision: nextRevision(rollout), status, checkAt: deadline };
}

/** Returns the decision for a step of a rollout. A complete rollout also deletes the ReplicaSets that exceed the history limit. */
function step(before: Rollout, synced: Rollout, after: Rollout, conditions: Conditions, now: Millis): Decision {
  const { deployment, current } = synced;
  const isFound =
    current !== undefined &&
    deadlineOf(deployment) !== undefined &&
    conditionOf(conditions, 'Progressing') === undefined;
  const message = `Found new replica set "${current?.metadata.name}"`;
  const shown = isFound
    ? withCondition(conditions, progressing('True', 'FoundNewReplicaSet', message), now)
    : conditions;
  const { status, deadline } = rolloutStatus(after, shown, now);
  const isDone = decision(synced, after).changes.length === 0 && isComplete(deployment, countsOf(synced));
  return { ...decision(before, after), remove: isDone ? obsolete(after) : [], status, checkAt: deadline };
}
