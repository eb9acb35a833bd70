/**
 * Chooses the node for a Pod.
 *
 * Boundary: schedule() is a pure function of the Pod, the nodes, the bound Pods and the storage objects; src/scheduler calls it and binds
 * the Pod.
 * Invariants: the chosen node is feasible; the same input yields the same node (best score, then first name). If no node is feasible, the
 * message explains why in upstream's wording.
 * Source: the scheduling cycle of v1.33's default profile, with only the filters in filters.ts, volume-claims.ts, topology-spread.ts and
 * inter-pod-affinity.ts (for example, without VolumeZone and NodeVolumeLimits), and with LeastAllocated as the only score.
 */
import type { Node, Pod, PodDisruptionBudget } from '../api/generated/types.ts';
import { feasible } from './filters.ts';
import type { NamespaceLabels } from './inter-pod-affinity.ts';
import type { PodsOnNode } from './node-pods.ts';
import { podRuleOf } from './pod-rules.ts';
import { leastAllocatedScore } from './scores.ts';
import { claimProblem, type VolumeFacts, volumeReasons } from './volume-claims.ts';

/** The facts about the cluster that a decision needs in addition to the Pods and the nodes. */
export interface ClusterFacts {
  /** Without them, claims are ignored. */
  volumes?: VolumeFacts;
  budgets?: readonly PodDisruptionBudget[];
  /** Without it, every namespace counts as one without labels. */
  namespaceLabels?: NamespaceLabels;
}

export type Placement = { node: string } | { message: string };

/**
 * Returns the chosen node, or the message for the Pod if no node is feasible. `podsOn`: returns the Pods that are bound to the node, or
 * count as bound.
 */
export function schedule(
  pod: Pod,
  nodes: readonly Node[],
  podsOn: (node: string) => PodsOnNode,
  { volumes, namespaceLabels = () => undefined }: ClusterFacts = {},
): Placement {
  if (nodes.length === 0) return { message: 'no nodes available to schedule pods' };
  const problem = volumes === undefined ? undefined : claimProblem(pod, volumes);
  if (problem !== undefined) return { message: `0/${nodes.length} nodes are available: ${problem}.` };
  const rule = podRuleOf(pod, nodes, podsOn, namespaceLabels);
  const reasons = new Map<string, number>();
  let best: { name: string; score: number } | undefined;
  for (const node of nodes) {
    const { name } = node.metadata;
    const onNode = podsOn(name);
    const other = reasonsAgainst(pod, node, onNode, volumes);
    const against = other.length > 0 ? other : (rule?.reasonsAgainst(node) ?? []);
    if (against.length > 0) {
      for (const reason of against) reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
      continue;
    }
    const score = leastAllocatedScore(pod, node, onNode);
    if (best === undefined || score > best.score || (score === best.score && name < best.name)) best = { name, score };
  }
  if (best !== undefined) return { node: best.name };
  const histogram = [...reasons].map(([reason, count]) => `${count} ${reason}`).sort();
  return { message: `0/${nodes.length} nodes are available: ${histogram.join(', ')}.` };
}

/**
 * Returns why the Pod does not fit on the node in addition to `onNode`; an empty list if it fits. Does not check rules about the Pods of
 * other nodes: see pod-rules.ts.
 */
export function reasonsAgainst(pod: Pod, node: Node, onNode: PodsOnNode, volumes?: VolumeFacts): string[] {
  const result = feasible(pod, node, onNode);
  if (!result.fits) return result.reasons;
  return volumes === undefined ? [] : volumeReasons(pod, node, onNode, volumes);
}
