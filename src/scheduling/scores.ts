/** Scores a feasible node for a Pod. Source: NodeResourcesFit with LeastAllocated of v1.33. */
import { effectiveRequests } from '../api/core/v1/pod/resources.ts';
import type { Node, Pod } from '../api/generated/types.ts';
import { parseQuantity, type Quantity, zeroQuantity } from '../machinery/quantity.ts';
import type { PodsOnNode } from './node-pods.ts';
import { allocatableOf } from './node-resources.ts';

export const SCORED = ['cpu', 'memory'] as const;
export type ScoredResource = (typeof SCORED)[number];

/** The request of a Pod that does not request the resource, so that such Pods are spread over the nodes as well. */
const assumed: Readonly<Record<ScoredResource, Quantity>> = {
  cpu: parseQuantity('100m') ?? zeroQuantity,
  memory: parseQuantity('200Mi') ?? zeroQuantity,
};

/** Returns the request that the score counts, in billionths of the unit. */
export const scoredRequest = (pod: Pod, name: ScoredResource): bigint =>
  (effectiveRequests(pod).get(name) ?? assumed[name]).nano;

/**
 * Returns a score from 0 to 100: the average of the free percentages of cpu and memory with the Pod on the node. Omits a resource that the
 * node does not have; returns 0 if the node has neither.
 */
export function leastAllocatedScore(pod: Pod, node: Node, onNode: PodsOnNode): number {
  let score = 0n;
  let weights = 0n;
  for (const name of SCORED) {
    const capacity = allocatableOf(node, name)?.nano ?? 0n;
    if (capacity === 0n) continue;
    weights++;
    const used = onNode.scored(name) + scoredRequest(pod, name);
    if (used <= capacity) score += ((capacity - used) * 100n) / capacity;
  }
  return weights === 0n ? 0 : Number(score / weights);
}
