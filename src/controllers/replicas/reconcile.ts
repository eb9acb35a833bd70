/**
 * Decides how many Pods an owner creates, and which Pods it deletes and why. The functions are pure.
 * Source: manageReplicas of pkg/controller/replicaset/replica_set.go of v1.33 (behavior); the specification of defer containers (reasons).
 */
import type { Pod } from '../../api/generated/types.ts';
import type { Millis } from '../../machinery/time.ts';
import { isMarked } from '../ownership/deletion-mark.ts';
import type { DeletionReason } from '../ownership/pods-of-owner.ts';
import { podsToDelete } from './deletion-order.ts';
import { type ReplicaOwner, wantedReplicas } from './replica-owner.ts';

/** The maximum number of Pods that one decision creates or deletes. Source: BurstReplicas of v1.33. */
export const BURST = 500;

/** An annotation in which Deployments number their ReplicaSets. The current ReplicaSet has the highest number. */
export const REVISION = 'deployment.kubernetes.io/revision';
/** Deployments write their spec.replicas into this annotation of their ReplicaSets. */
const DESIRED = 'deployment.kubernetes.io/desired-replicas';

export interface ReplicasInput {
  owner: ReplicaOwner;
  pods: readonly Pod[];
  /** The other owners with the same controller; empty if there is no controller. */
  siblings: readonly ReplicaOwner[];
  related: () => Iterable<Pod>;
  now: Millis;
}

export interface Decision {
  create: number;
  remove: readonly Pod[];
  /** The deletion reason of the Pods in `remove`, for their defer containers. */
  reason: DeletionReason;
  /** Pods that are no longer to be deleted, but were marked with a deletion reason before a crash or a failed delete. */
  unmark: readonly Pod[];
}

export function reconcile({ owner, pods, siblings, related, now }: ReplicasInput): Decision {
  const reason = isSuperseded(owner, siblings) || isEmptied(owner) ? 'Replaced' : 'ScaledDown';
  // The garbage collector deletes the Pods of an owner that is being deleted.
  if (owner.metadata.deletionTimestamp !== undefined) return { create: 0, remove: [], reason, unmark: [] };
  const surplus = pods.length - wantedReplicas(owner);
  const create = Math.min(Math.max(-surplus, 0), BURST);
  const count = Math.min(Math.max(surplus, 0), BURST);
  const remove = count === 0 ? [] : podsToDelete(pods, count < pods.length ? related() : [], count, now);
  const removed = new Set(remove);
  // If the surplus exceeds BURST, the next decision may delete the marked Pods.
  const unmark = surplus > BURST ? [] : pods.filter((pod) => isMarked(pod) && !removed.has(pod));
  return { create, remove, reason, unmark };
}

/** Whether a sibling has a newer revision, so that new Pods replace the Pods of the owner. */
function isSuperseded(owner: ReplicaOwner, siblings: readonly ReplicaOwner[]): boolean {
  const revision = revisionOf(owner);
  return siblings.some((sibling) => revisionOf(sibling) > revision);
}

/**
 * Whether a Deployment wants Pods, but none of this ReplicaSet. With the strategy Recreate, the next ReplicaSet does not exist yet at this
 * time.
 */
const isEmptied = (owner: ReplicaOwner): boolean =>
  wantedReplicas(owner) === 0 && Number.parseInt(owner.metadata.annotations?.[DESIRED] ?? '', 10) > 0;

const revisionOf = ({ metadata }: ReplicaOwner): number =>
  Number.parseInt(metadata.annotations?.[REVISION] ?? '', 10) || 0;
