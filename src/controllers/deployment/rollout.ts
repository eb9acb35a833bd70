/**
 * Defines the state of a rollout and its limits. The functions are pure.
 * Source: pkg/controller/deployment/util/deployment_util.go of v1.33 (behavior).
 */
import type { Deployment, ReplicaSet } from '../../api/generated/types.ts';
import { resolveAmount } from '../../api/int-or-percent.ts';
import { parseTime } from '../../machinery/time.ts';

/** A Deployment with its ReplicaSets. Functions return a new rollout with changed copies, and never modify a ReplicaSet. */
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

export const olderFirst = (a: ReplicaSet, b: ReplicaSet): number =>
  createdAt(a) - createdAt(b) || (a.metadata.name < b.metadata.name ? -1 : 1);

/**
 * The surge is rounded up, the unavailable replicas are rounded down. If both are 0, one replica may be unavailable, so that the rollout
 * can progress.
 */
function amounts(deployment: Deployment): { surge: number; unavailable: number } {
  const { maxSurge, maxUnavailable } = deployment.spec?.strategy?.rollingUpdate ?? {};
  const surge = resolveAmount(maxSurge, wanted(deployment), 'up');
  const unavailable = resolveAmount(maxUnavailable, wanted(deployment), 'down');
  return { surge, unavailable: surge === 0 && unavailable === 0 ? 1 : unavailable };
}

/** The number of Pods that may exist in excess of the replicas during a rolling update; 0 with another strategy. */
export const maxSurge = (deployment: Deployment): number => (isRolling(deployment) ? amounts(deployment).surge : 0);

/** The number of replicas that may be unavailable during a rolling update; 0 with another strategy. */
export const maxUnavailable = (deployment: Deployment): number =>
  isRolling(deployment) ? Math.min(amounts(deployment).unavailable, wanted(deployment)) : 0;

/** Sets the replicas, and the annotations that later proportional scaling needs. Returns the same object if nothing changes. */
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

/** Like resized(), but leaves a ReplicaSet that already has the size unchanged, with its annotations. */
export const scaled = (set: ReplicaSet, replicas: number, deployment: Deployment): ReplicaSet =>
  sizeOf(set) === replicas ? set : resized(set, replicas, deployment);

/** Returns the replicas that the current ReplicaSet may have now. Source: NewRSNewReplicas. */
export function currentSize({ deployment, current, old }: Rollout): number {
  const replicas = wanted(deployment);
  if (!isRolling(deployment)) return replicas;
  const size = current === undefined ? 0 : sizeOf(current);
  const room = replicas + maxSurge(deployment) - total(old, sizeOf) - size;
  return room <= 0 ? size : size + Math.min(room, replicas - size);
}
