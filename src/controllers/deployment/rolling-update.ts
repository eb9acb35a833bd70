/**
 * Computes one step of a rolling update: the current ReplicaSet grows as far as the surge permits; if it cannot grow, the old ReplicaSets
 * shrink as far as enough Pods stay available. The functions are pure.
 * Source: pkg/controller/deployment/rolling.go of v1.33 (behavior). Difference: upstream shrinks old ReplicaSets without waiting for the
 * statuses of scaled ReplicaSets.
 */
import type { ReplicaSet } from '../../api/generated/types.ts';
import { allOf, currentSize, maxUnavailable, type Rollout, scaled, sizeOf, total, wanted } from './rollout.ts';

/** After a scale-down, the status still counts Pods that the ReplicaSet is going to delete. They must not count as available. */
const availableOf = (set: ReplicaSet): number => Math.min(sizeOf(set), set.status?.availableReplicas ?? 0);

/** Returns the rollout after the next step; the same object if nothing can be scaled now. */
export function rollingStep(rollout: Rollout): Rollout {
  const grown = scaleCurrent(rollout);
  return grown === rollout ? shrinkOld(rollout) : grown;
}

function scaleCurrent(rollout: Rollout): Rollout {
  const { deployment, current } = rollout;
  if (current === undefined) return rollout;
  const replicas = wanted(deployment);
  const size = sizeOf(current) > replicas ? replicas : currentSize(rollout);
  const next = scaled(current, size, deployment);
  return next === current ? rollout : { ...rollout, current: next };
}

/**
 * Whether the status is from after the last scaling. After a scale-down and a scale-up, an older status may count Pods that were deleted in
 * between.
 */
const isObserved = ({ metadata, status }: ReplicaSet): boolean =>
  (status?.observedGeneration ?? 0) >= (metadata.generation ?? 0);

function shrinkOld(rollout: Rollout): Rollout {
  const { deployment, current } = rollout;
  if (!allOf(rollout).every(isObserved)) return rollout;
  const minAvailable = wanted(deployment) - maxUnavailable(deployment);
  const unavailable = current === undefined ? 0 : sizeOf(current) - availableOf(current);
  const most = total(allOf(rollout), sizeOf) - minAvailable - unavailable;
  if (total(rollout.old, sizeOf) === 0 || most <= 0) return rollout;
  const cleaned = shrink(rollout, most, (set) => sizeOf(set) - availableOf(set));
  const surplus = total(allOf(cleaned), availableOf) - minAvailable;
  return surplus <= 0 ? cleaned : shrink(cleaned, surplus, sizeOf);
}

/**
 * Removes up to `most` replicas from the old ReplicaSets, and at most `from(set)` from each. Returns the same object if nothing changes.
 */
function shrink(rollout: Rollout, most: number, from: (set: ReplicaSet) => number): Rollout {
  let left = most;
  const old = rollout.old.map((set) => {
    const count = Math.max(0, Math.min(left, from(set), sizeOf(set)));
    left -= count;
    return scaled(set, sizeOf(set) - count, rollout.deployment);
  });
  return old.every((set, index) => set === rollout.old[index]) ? rollout : { ...rollout, old };
}
