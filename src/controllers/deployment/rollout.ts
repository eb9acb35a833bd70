/**
 * Defines the state of a rollout, which the steps of a decision change, and computes the amounts that bound it. The functions are pure.
 * Source: pkg/controller/deployment/util/deployment_util.go of v1.33 (behavior).
 */
import type { Deployment, ReplicaSet } from '../../api/generated/types.ts';
import { resolveAmount } from '../../api/int-or-percent.ts';
import { parseTime } from '../../machinery/time.ts';

/** A Deployment with its ReplicaSets. A step returns a new rollout with changed copies of ReplicaSets; it never modifies one. */
export interface Rollout {
  deployment: Deployment;
  /** The ReplicaSet with the template of the Deployment; undefined if it does not exist yet. */
  current: ReplicaSet | undefined;
  /** The other ReplicaSets, the oldest first. */
  old: readonly ReplicaSet[];
}

export const DESIRED = 'deployment.kubernetes.io/desired-replicas';
export const MAX = 'deployment.kubernetes.io/max-replicas';

export const wanted = ({ spec }: Deployment): number => spec?.replicas ?? 1;
export const sizeOf = ({ spec }: ReplicaSet): number => spec?.replicas ?? 1;
export const isRolling = ({ spec }: Deployment): boolean => spec?.strategy?.type !== 'Recreate';

export const allOf = ({ current, old }: Rollout): ReplicaSet[] =>
  current === undefined ? [...old] : [...old, current];

export const total = (sets: readonly ReplicaSet[], count: (set: ReplicaSet) => number | undefined): number =>
  sets.reduce((sum, set) => sum + (count(set) ?? 0), 0);

export const createdAt = ({ metadata }: ReplicaSet): number => parseTime(metadata.creationTimestamp) ?? 0;

/** Compares two ReplicaSets for sorting: the ReplicaSet that was created earlier comes first; the name decides if the times are equal. */
export const olderFirst = (a: ReplicaSet, b: ReplicaSet): number =>
  createdAt(a) - createdAt(b) || (a.metadata.name < b.metadata.name ? -1 : 1);

/**
 * Returns the surge, rounded up, and the number of replicas that may be unavailable, rounded down. If both are 0, one replica may be
 * unavailable.
 */
function amounts(deployment: Deployment): { surge: number; unavailable: number } {
  const { maxSurge, maxUnavailable } = deployment.spec?.strategy?.rollingUpdate ?? {};
  const surge = resolveAmount(maxSurge, wanted(deployment), 'up');
  const unavailable = resolveAmount(maxUnavailable, wanted(deployment), 'down');
  return { surge, unavailable: surge === 0 && unavailable === 0 ? 1 : unavailable };
}

/** Returns how many Pods may exist above the wanted number during a rolling update; 0 with another strategy. */
export const maxSurge = (deployment: Deployment): number => (isRolling(deployment) ? amounts(deployment).surge : 0);

/** Returns how many of the wanted Pods may be unavailable during a rolling update; 0 with another strategy. */
export const maxUnavailable = (deployment: Deployment): number =>
  isRolling(deployment) ? Math.min(amounts(deployment).unavailable, wanted(deployment)) : 0;

/**
 * Returns the ReplicaSet with the size, and with the annotations for later proportional scaling. Returns the same object if nothing
 * changes.
 */
export function resized(set: ReplicaSet, replicas: number, deployment: Deployment): ReplicaSet {
  const annotations = {
    ...set.metadata.annotations,
    [DESIRED]: String(wanted(deployment)),
    [MAX]: String(wanted(deployment) + maxSurge(deployment)),
  };
  const isSame = [DESIRED, MAX].every(
    (name) => set.metadata.annotations?.[name] === annotations[name as typeof DESIRED],
  );
  if (isSame && sizeOf(set) === replicas) return set;
  return {
    ...set,
    metadata: { ...set.metadata, annotations },
    spec: { ...set.spec, selector: set.spec?.selector ?? {}, replicas },
  };
}

/** Like resized(), but a ReplicaSet that has the size keeps its annotations. */
export const scaled = (set: ReplicaSet, replicas: number, deployment: Deployment): ReplicaSet =>
  sizeOf(set) === replicas ? set : resized(set, replicas, deployment);

/** Returns the size that the current ReplicaSet may have now. Source: NewRSNewReplicas. */
export function currentSize({ deployment, current, old }: Rollout): number {
  const replicas = wanted(deployment);
  if (!isRolling(deployment)) return replicas;
  const size = current === undefined ? 0 : sizeOf(current);
  const room = replicas + maxSurge(deployment) - total(old, sizeOf) - size;
  return room <= 0 ? size : size + Math.min(room, replicas - size);
}
