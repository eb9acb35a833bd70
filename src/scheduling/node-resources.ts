/** What Pods take of a node, and what it has. Amounts are exact, in billionths of the unit. Source: v1.33. */
import { hasEnded } from '../api/core/v1/pod/phase.ts';
import { addResources, effectiveRequests, resourceQuantities } from '../api/core/v1/pod/resources.ts';
import type { Node, Pod } from '../api/generated/types.ts';
import type { Quantity } from '../machinery/quantity.ts';

/** allocatable, or capacity where the node does not say. */
export const allocatableOf = (node: Node): Map<string, Quantity> =>
  resourceQuantities(node.status?.allocatable ?? node.status?.capacity);

/** The sum of the Pods' effective requests. */
export function requestedBy(pods: readonly Pod[]): Map<string, Quantity> {
  const sum = new Map<string, Quantity>();
  for (const pod of pods) if (!hasEnded(pod)) addResources(sum, effectiveRequests(pod));
  return sum;
}
