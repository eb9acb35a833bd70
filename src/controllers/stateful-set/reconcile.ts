/**
 * Decides which Pods, claims and revisions of a StatefulSet to create, correct and delete, and computes its status. The functions are pure.
 * With the policy OrderedReady, each decision ends at the first Pod for which it must wait. With Parallel, a decision handles all Pods at
 * once. The rolling update waits until no Pods are missing or surplus.
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
 * Limits three numbers of Pods in one decision: those created, those deleted for an update, and those deleted for other reasons. Source:
 * MaxBatchSize of pkg/controller/statefulset.
 */
export const BURST = 500;

export interface StatefulInput {
  set: StatefulSet;
  revisions: Revisions;
  history: History;
  pods: readonly Pod[];
  claimNamed(name: string): PersistentVolumeClaim | undefined;
  now: Millis;
}

export interface NewMember {
  pod: Pod;
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
  /** Corrected Pods, which lacked the labels or volumes of a member. */
  correct: Pod[];
  own: ClaimChange[];
  remove: Removal[];
  /** Pods that are no longer to be deleted, but were marked with a deletion reason before a crash or a failed delete. */
  unmark: readonly Pod[];
  obsolete: readonly ControllerRevision[];
  events: EventDraft[];
  status: StatefulSetStatus;
  /** When the next ready Pod becomes available, so that the StatefulSet must be reconciled again; undefined if there is none. */
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

/** Handles the Pods in range. Returns false if the Pods out of range must wait. */
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
 * Adds a missing Pod to the decision, unless a claim of the Pod is being deleted or is about to be deleted. Returns false, because later
 * Pods wait for this Pod.
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

/** Replaces or corrects the Pod if necessary. Returns false if the Pod with the next ordinal must wait for this Pod. */
function examine(turn: Turn, pod: Pod): boolean {
  const { members, claimNamed, decision, isOrdered } = turn;
  const { set, now } = members;
  if (hasEnded(pod)) {
    // The new Pod has the same name, so it can be created only after this Pod has been removed.
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

/** Deletes Pods out of range, from the highest ordinal. Returns false if the update must wait. */
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
 * Returns the first unhealthy Pod: by ordinal in range, then out of range. Returns undefined if an earlier Pod in range is missing, or if
 * all Pods are healthy.
 */
function firstUnhealthy(members: Members): Pod | undefined {
  for (let index = 0; index < wantedReplicas(members.set); index++) {
    const pod = members.at(index);
    if (pod === undefined || !isHealthy(pod)) return pod;
  }
  return members.condemned.findLast((pod) => !isHealthy(pod));
}

/** Returns the oldest unused revisions in excess of revisionHistoryLimit. */
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
