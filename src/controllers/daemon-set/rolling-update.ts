/**
 * Computes the next step of a rolling update: which old Pods to delete, or with a surge, which nodes get a second Pod. The functions are
 * pure.
 * Source: rollingUpdate of pkg/controller/daemon/update.go of v1.33 (behavior).
 */
import type { Pod } from '../../api/generated/types.ts';
import { type Daemons, isAvailable, pairOf, updateAmounts } from './daemons.ts';

export interface UpdateStep {
  /** Names of nodes that get a second Pod. */
  create: string[];
  remove: Pod[];
}

export function rollingStep(daemons: Daemons): UpdateStep {
  const { maxSurge, maxUnavailable } = updateAmounts(daemons);
  return maxSurge === 0 ? { create: [], remove: replacedPods(daemons, maxUnavailable) } : surgeStep(daemons, maxSurge);
}

/** Returns the old Pods to delete: all unavailable ones, and as many available ones as maxUnavailable permits. */
function replacedPods(daemons: Daemons, maxUnavailable: number): Pod[] {
  let unavailable = 0;
  const allowed: Pod[] = [];
  const candidates: Pod[] = [];
  for (const { pods, placement } of daemons.nodes) {
    if (!placement.shouldRun && pods.length === 0) continue;
    const pair = pairOf(pods, daemons.hash);
    const only =
      pair && (pair.updated === undefined) !== (pair.old === undefined) ? (pair.updated ?? pair.old) : undefined;
    if (only === undefined || !isAvailable(daemons, only)) unavailable += 1;
    if (pair === undefined || pair.updated !== undefined || pair.old === undefined) continue;
    if (isAvailable(daemons, pair.old)) candidates.push(pair.old);
    else allowed.push(pair.old);
  }
  return [...allowed, ...candidates.slice(0, Math.max(0, maxUnavailable - unavailable))];
}

/**
 * Returns the nodes that get a second Pod: all whose old Pod is not available, and as many others with an old Pod as maxSurge permits. Also
 * returns the old Pods to delete.
 */
function surgeStep(daemons: Daemons, maxSurge: number): UpdateStep {
  let [surged, available] = [0, 0];
  const remove: Pod[] = [];
  const strays: Pod[] = [];
  const allowed: string[] = [];
  const candidates: string[] = [];
  for (const { node, pods, placement } of daemons.nodes) {
    const pair = pairOf(pods, daemons.hash);
    if (pair === undefined) surged += 1;
    const { updated, old } = pair ?? {};
    const first = old ?? updated;
    const isFirstAvailable = first !== undefined && isAvailable(daemons, first);
    if (isFirstAvailable) available += 1;
    if (old === undefined) continue;
    if (updated !== undefined) {
      if (isAvailable(daemons, updated)) remove.push(old);
      else surged += 1;
    } else if (placement.shouldRun) (isFirstAvailable ? candidates : allowed).push(node.metadata.name);
    else (isFirstAvailable ? strays : remove).push(old);
  }
  const desired = daemons.nodes.filter(({ placement }) => placement.shouldRun).length;
  return {
    create: [...allowed, ...candidates.slice(0, Math.max(0, maxSurge - surged))],
    remove: [...remove, ...strays.slice(0, Math.max(0, available - desired))],
  };
}
