/**
 * Decides what to do for a StatefulSet whose revisions exist: which Pods and claims to create, correct and delete, which revisions to
 * delete, and the status. The functions are pure. With the policy OrderedReady, each decision ends at the first Pod for which it must wait.
 * With Parallel, each decision handles all Pods at once. Missing and surplus Pods come first; the rolling update continues once there are
 * none.
 * Source: pkg/controller/statefulset/stateful_set_control.go of v1.33 (behavior).
 */
import { hasEnded } from '../../api/core/v1/pod/status/final-phase.ts';
import type {
  ControllerRevision,
  PersistentVolumeClaim,
  Pod,
  StatefulSet,
  StatefulSetStatus,
} from '../../api/generated/types.ts';
import type { EventDraft } from '../../api/kind.ts';
import type { OwnerReference } from '../../machinery/meta.ts';
import type { Millis } from '../../machinery/time.ts';
import { isMarked } from '../ownership/deletion-mark.ts';
import { isPodActive } from '../ownership/pod-state.ts';
import type { DeletionReason } from '../ownership/pods-of-owner.ts';
import { type History, oldest } from '../revisions/history.ts';
import { claimOwners, claimsOf, isStaleClaim } from './claims.ts';
import {
  corrected,
  isHealthy,
  isRunningAndAvailable,
  isRunningAndReady,
  isTerminating,
  type Members,
  membersOf,
  newMember,
  ordinalOf,
  type Revisions,
  revisionOf,
  startOf,
  wantedReplicas,
} from './members.ts';
import { outdatedPods } from './rolling-update.ts';
import { nextAvailableAt, statusOf } from './status.ts';

/**
 * The maximum number of Pods that one decision creates, of Pods that it deletes for an update, and of other Pods that it deletes. Source:
 * MaxBatchSize of pkg/controller/statefulset.
 */
export const BURST = 500;

export interface StatefulInput {
  set: StatefulSet;
  revisions: Revisions;
  history: History;
  /** The Pods that the StatefulSet controls. */
  pods: readonly Pod[];
  /** Returns the claim with the name in the StatefulSet's namespace; undefined if it does not exist. */
  claimNamed(name: string): PersistentVolumeClaim | undefined;
  now: Millis;
}

export interface NewMember {
  pod: Pod;
  /** The claims of the Pod that do not exist yet. */
  claims: readonly PersistentVolumeClaim[];
}

export interface ClaimChange {
  claim: PersistentVolumeClaim;
  references: OwnerReference[];
}

export interface Removal {
  pod: Pod;
  reason: DeletionReason;
}

export interface Decision {
  /** Missing claims of existing Pods that wait for them. */
  claims: NewMember[];
  create: NewMember[];
  /** The new states of Pods that lack the labels or volumes of a member. */
  correct: Pod[];
  /** Claims whose owners differ from the owners that the retention policy requires. */
  own: ClaimChange[];
  remove: Removal[];
  /** Pods that this controller has marked with a reason before a crash or a failed delete, and that it no longer deletes. */
  unmark: readonly Pod[];
  obsolete: readonly ControllerRevision[];
  events: EventDraft[];
  status: StatefulSetStatus;
  /** When the next ready Pod becomes available, so that a decision is due; undefined if there is no such Pod. */
  checkAt: Millis | undefined;
}

export function reconcile({ set, revisions, history, pods, claimNamed, now }: StatefulInput): Decision {
  const members = membersOf(set, revisions, pods, now);
  const decision: Decision = {
    claims: [],
    create: [],
    correct: [],
    own: [],
    remove: [],
    unmark: [],
    obsolete: [],
    events: [],
    status: statusOf(members),
    checkAt: nextAvailableAt(members),
  };
  if (set.metadata.deletionTimestamp !== undefined) return decision;
  const turn = { members, claimNamed, decision, isOrdered: set.spec?.podManagementPolicy !== 'Parallel' };
  if (fill(turn) && shrink(turn)) {
    const leaving = new Set(decision.remove.map(({ pod }) => pod));
    const outdated = outdatedPods(members, leaving).slice(0, BURST);
    decision.remove.push(...outdated.map((pod): Removal => ({ pod, reason: 'Replaced' })));
  }
  const removed = new Set(decision.remove.map(({ pod }) => pod));
  decision.unmark = pods.filter((pod) => isMarked(pod) && isPodActive(pod) && !removed.has(pod));
  decision.obsolete = obsoleteRevisions(set, revisions, history, pods);
  return decision;
}

interface Turn {
  members: Members;
  claimNamed: StatefulInput['claimNamed'];
  decision: Decision;
  isOrdered: boolean;
}

/**
 * Decides to create, replace and correct the Pods in the range. Returns whether the decision may go on to the Pods outside of the range.
 */
function fill(turn: Turn): boolean {
  const { members, decision, isOrdered } = turn;
  for (let index = 0; index < wantedReplicas(members.set); index++) {
    const pod = members.at(index);
    const canContinue = pod === undefined ? add(turn, startOf(members.set) + index) : examine(turn, pod);
    if (!canContinue && isOrdered) return false;
    if (decision.create.length >= BURST) return false;
  }
  return true;
}

/**
 * Decides to create the Pod with the ordinal, unless one of its claims is being deleted or is about to be deleted. Returns false, because
 * later Pods wait for this one.
 */
function add({ members: { set }, members, claimNamed, decision }: Turn, ordinal: number): false {
  const pod = newMember(members, ordinal);
  const { name } = pod.metadata;
  const claims = claimsOf(set, ordinal).map((claim) => ({ claim, existing: claimNamed(claim.metadata.name) }));
  if (claims.some(({ existing }) => existing !== undefined && isStaleClaim(set, existing, name))) return false;
  const deleting = claims.filter(({ existing }) => existing?.metadata.deletionTimestamp !== undefined);
  if (deleting.length > 0) {
    const causes = deleting.map(({ claim }) => `pvc ${claim.metadata.name} is being deleted`);
    decision.events.push(failedEvent('Create', set, name, causes.length === 1 ? causes[0] : `[${causes.join(', ')}]`));
    return false;
  }
  const missing = claims.filter(({ existing }) => existing === undefined).map(({ claim }) => claim);
  decision.create.push({ pod, claims: missing });
  return false;
}

export function failedEvent(
  verb: 'Create' | 'Update' | 'Delete',
  set: StatefulSet,
  pod: string,
  cause = '',
): EventDraft {
  const message = `${verb.toLowerCase()} Pod ${pod} in StatefulSet ${set.metadata.name} failed error: ${cause}`;
  return { type: 'Warning', reason: `Failed${verb}`, message };
}

/**
 * Decides to replace or correct an existing Pod in the range if necessary. Returns whether the Pod with the next ordinal need not wait for
 * this one.
 */
function examine(turn: Turn, pod: Pod): boolean {
  const { members, claimNamed, decision, isOrdered } = turn;
  const { set, now } = members;
  if (hasEnded(pod)) {
    // The next Pod with the name is created once this one no longer exists.
    if (!isTerminating(pod) && decision.remove.length < BURST) decision.remove.push({ pod, reason: 'Replaced' });
    return false;
  }
  if (pod.status?.phase === 'Pending') {
    const claims = claimsOf(set, ordinalOf(set, pod) ?? 0);
    const missing = claims.filter(({ metadata }) => claimNamed(metadata.name) === undefined);
    if (missing.length > 0) decision.claims.push({ pod, claims: missing });
    keepOwners(turn, pod, false);
  }
  if (isOrdered && (isTerminating(pod) || !isRunningAndAvailable(set, pod, now))) return false;
  if (pod.status?.phase !== 'Pending') keepOwners(turn, pod, false);
  const correct = isTerminating(pod) ? undefined : corrected(set, pod);
  if (correct !== undefined) decision.correct.push(correct);
  return true;
}

/** Decides to give the claims of the Pod the owners that follow from the retention policy. */
function keepOwners({ members: { set }, claimNamed, decision }: Turn, pod: Pod, isScaledDown: boolean): void {
  for (const { metadata } of claimsOf(set, ordinalOf(set, pod) ?? 0)) {
    const claim = claimNamed(metadata.name);
    if (claim === undefined) continue;
    const { references, hasConflict } = claimOwners(set, pod, isScaledDown, claim);
    if (hasConflict) decision.events.push(conflictEvent(metadata.name));
    if (references !== undefined) decision.own.push({ claim, references });
  }
}

const conflictEvent = (claim: string): EventDraft => ({
  type: 'Warning',
  reason: 'ConflictingController',
  message: `PersistentVolumeClaim ${claim} has a conflicting OwnerReference that acts as a manging controller, the retention policy is ignored for this claim`,
});

/** Decides to delete Pods outside of the range, from the highest ordinal. Returns whether the decision may go on to the update. */
function shrink(turn: Turn): boolean {
  const { members, decision, isOrdered } = turn;
  const { set, condemned, now } = members;
  for (const pod of condemned) keepOwners(turn, pod, true);
  const unhealthy = firstUnhealthy(members);
  for (const pod of condemned) {
    if (isTerminating(pod)) {
      if (isOrdered) return false;
      continue;
    }
    const isBlocked = !(isRunningAndReady(pod) && isRunningAndAvailable(set, pod, now)) && pod !== unhealthy;
    if (isOrdered && isBlocked) return false;
    if (decision.remove.length < BURST) decision.remove.push({ pod, reason: 'ScaledDown' });
    if (isOrdered) return false;
  }
  return true;
}

/**
 * Returns the first Pod that is not healthy, by ordinal, first of the Pods in the range, then of the Pods outside of it; undefined if an
 * earlier Pod of the range does not exist, or if all Pods are healthy.
 */
function firstUnhealthy(members: Members): Pod | undefined {
  for (let index = 0; index < wantedReplicas(members.set); index++) {
    const pod = members.at(index);
    if (pod === undefined || !isHealthy(pod)) return pod;
  }
  return members.condemned.findLast((pod) => !isHealthy(pod));
}

/** Returns the revisions above the limit of the history that neither the StatefulSet nor a Pod has, the oldest first. */
function obsoleteRevisions(
  { spec }: StatefulSet,
  { current, update }: Revisions,
  { old, duplicates }: History,
  pods: readonly Pod[],
): ControllerRevision[] {
  const live = new Set([current.metadata.name, update.metadata.name, ...pods.map(revisionOf)]);
  const unused = [...old, ...duplicates].filter(({ metadata }) => !live.has(metadata.name));
  return oldest(unused, unused.length - (spec?.revisionHistoryLimit ?? 10));
}
