/**
 * Which node a Pod goes to.
 *
 * Boundary: a pure function of the Pod, the nodes and the Pods that are bound; src/scheduler calls it and binds.
 * Invariants: the node named is feasible; the same input names the same node (the best score, then the first name);
 * where no node is feasible the message counts every node, by reason, in upstream's words.
 * Source: the scheduling cycle of v1.33's default profile; there is no preemption, and inter-pod affinity and topology
 * spread are not considered.
 */
import type { Node, Pod } from '../api/generated/types.ts';
import { feasible } from './filters.ts';
import { leastAllocatedScore } from './scores.ts';

export type Placement = { node: string } | { message: string };

/** `pods`: every Pod that has a node. */
export function schedule(pod: Pod, nodes: readonly Node[], pods: readonly Pod[]): Placement {
  if (nodes.length === 0) return { message: 'no nodes available to schedule pods' };
  const byNode = Map.groupBy(pods, (other) => other.spec?.nodeName ?? '');
  const reasons = new Map<string, number>();
  let best: { name: string; score: number } | undefined;
  for (const node of nodes) {
    const { name } = node.metadata;
    const podsOnNode = byNode.get(name) ?? [];
    const result = feasible(pod, node, podsOnNode);
    if (!result.fits) {
      for (const reason of result.reasons) reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
      continue;
    }
    const score = leastAllocatedScore(pod, node, podsOnNode);
    if (best === undefined || score > best.score || (score === best.score && name < best.name)) best = { name, score };
  }
  if (best !== undefined) return { node: best.name };
  const histogram = [...reasons].map(([reason, count]) => `${count} ${reason}`).sort();
  return { message: `0/${nodes.length} nodes are available: ${histogram.join(', ')}.` };
}
