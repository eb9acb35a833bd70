/**
 * Scales the ReplicaSets of a Deployment that is scaled or paused. During a rollout, the ReplicaSets share the difference in proportion to
 * their sizes. The functions are pure.
 * Source: scale() and isScalingEvent() of pkg/controller/deployment/sync.go, and GetReplicaSetProportion, of v1.33 (behavior).
 */
import type { Deployment, ReplicaSet } from '../../api/generated/types.ts';
import {
  allOf,
  createdAt,
  DESIRED,
  isRolling,
  MAX,
  maxSurge,
  olderFirst,
  type Rollout,
  resized,
  scaled,
  sizeOf,
  total,
  wanted,
} from './rollout.ts';

const numberIn = ({ metadata }: ReplicaSet, annotation: string): number | undefined => {
  const text = metadata.annotations?.[annotation] ?? '';
  return /^\d+$/.test(text) ? Number(text) : undefined;
};

const active = (sets: readonly ReplicaSet[]): ReplicaSet[] => sets.filter((set) => sizeOf(set) > 0);

/** Whether the replicas of the Deployment have changed since its ReplicaSets were last scaled. */
export const isScaling = (rollout: Rollout): boolean =>
  active(allOf(rollout)).some(
    (set) => (numberIn(set, DESIRED) ?? wanted(rollout.deployment)) !== wanted(rollout.deployment),
  );

export function scalingStep(rollout: Rollout): Rollout {
  const { deployment, current, old } = rollout;
  const only = onlyActive(rollout);
  if (only !== undefined) return replaced(rollout, [resized(only, wanted(deployment), deployment)]);
  if (isSaturated(current, deployment))
    return replaced(
      rollout,
      active(old).map((set) => scaled(set, 0, deployment)),
    );
  return isRolling(deployment) ? proportional(rollout) : rollout;
}

/**
 * Returns the ReplicaSet that gets all replicas: the only active one; if none is active, the current one or else the newest. Undefined
 * means that several are active, or that there is no ReplicaSet.
 */
function onlyActive(rollout: Rollout): ReplicaSet | undefined {
  const sets = active(allOf(rollout));
  if (sets.length > 1) return undefined;
  return sets[0] ?? rollout.current ?? [...rollout.old].sort(olderFirst).at(-1);
}

const isSaturated = (current: ReplicaSet | undefined, deployment: Deployment): boolean =>
  current !== undefined &&
  sizeOf(current) === wanted(deployment) &&
  numberIn(current, DESIRED) === wanted(deployment) &&
  (current.status?.availableReplicas ?? 0) === wanted(deployment);

function proportional(rollout: Rollout): Rollout {
  const { deployment } = rollout;
  const sets = active(allOf(rollout));
  const allowed = wanted(deployment) > 0 ? wanted(deployment) + maxSurge(deployment) : 0;
  const toAdd = allowed - total(sets, sizeOf);
  // The largest come first. Among equal sizes, the newest grow first, and the oldest shrink first.
  sets.sort((a, b) => sizeOf(b) - sizeOf(a) || (toAdd > 0 ? createdAt(b) - createdAt(a) : createdAt(a) - createdAt(b)));
  let added = 0;
  const sizes = sets.map((set) => {
    const share = shareOf(set, deployment, toAdd, added);
    added += share;
    return sizeOf(set) + share;
  });
  // The largest ReplicaSet gets the remainder from rounding.
  if (sizes[0] !== undefined) sizes[0] = Math.max(0, sizes[0] + toAdd - added);
  return replaced(
    rollout,
    sets.map((set, index) => resized(set, sizes[index] ?? 0, deployment)),
  );
}

/**
 * Returns the change of the ReplicaSet's size. `toAdd` is negative when the Deployment shrinks; `added` is the part of `toAdd` that other
 * ReplicaSets have already received.
 */
function shareOf(set: ReplicaSet, deployment: Deployment, toAdd: number, added: number): number {
  const left = toAdd - added;
  if (left === 0) return 0;
  const share = fractionOf(set, deployment);
  return toAdd > 0 ? Math.min(share, left) : Math.max(share, left);
}

function fractionOf(set: ReplicaSet, deployment: Deployment): number {
  if (wanted(deployment) === 0) return -sizeOf(set);
  const most = wanted(deployment) + maxSurge(deployment);
  const before = numberIn(set, MAX) || deployment.status?.replicas || 0;
  return before === 0 ? 0 : Math.round((sizeOf(set) * most) / before) - sizeOf(set);
}

/** Replaces ReplicaSets by name. Returns the same object if none has changed. */
export function replaced(rollout: Rollout, changed: readonly ReplicaSet[]): Rollout {
  const byName = new Map(changed.map((set) => [set.metadata.name, set]));
  const next = (set: ReplicaSet): ReplicaSet => byName.get(set.metadata.name) ?? set;
  const current = rollout.current && next(rollout.current);
  const old = rollout.old.map(next);
  const isSame = current === rollout.current && old.every((set, index) => set === rollout.old[index]);
  return isSame ? rollout : { ...rollout, current, old };
}
