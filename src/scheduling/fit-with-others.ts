/**
 * Checks whether a Pod still fits on a node while other Pods are added one by one. Each added Pod is examined once, so that the cost does
 * not grow with the square of the number of Pods.
 *
 * Invariant: another Pod is added if and only if reasonsAgainst() would return no reason for the Pod beside the staying Pods, the Pods
 * added before, and this other Pod.
 */
import { effectiveRequests } from '../api/core/v1/pod/resources.ts';
import type { Node, Pod } from '../api/generated/types.ts';
import { addQuantities, compareQuantities, quantityValue, zeroQuantity } from '../machinery/quantity.ts';
import { hostPortClash } from './host-ports.ts';
import { NodePods } from './node-pods.ts';
import { allocatableOf, wantedBy } from './node-resources.ts';
import { reasonsAgainst } from './schedule.ts';
import { claimNamesOf, exclusiveClaims, type VolumeFacts } from './volume-claims.ts';

/** Adds `other` and returns true if the Pod of fitBeside() still fits. Otherwise returns false. */
export type AddBeside = (other: Pod) => boolean;

/**
 * Returns a function to call once for each other Pod; undefined if `pod` does not fit even beside `staying` alone. The caller must not pass
 * terminated Pods, neither in `staying` nor to the returned function.
 */
export function fitBeside(
  pod: Pod,
  node: Node,
  staying: readonly Pod[],
  facts: VolumeFacts | undefined,
): AddBeside | undefined {
  const stays = new NodePods(staying);
  if (reasonsAgainst(pod, node, stays, facts).length > 0) return undefined;
  const maxPods = allocatableOf(node, 'pods');
  const wanted = wantedBy(pod);
  const used = new Map(wanted.map(([name]) => [name, stays.requested(name)]));
  let count = BigInt(stays.count);
  const takesPortOf = hostPortClash(pod);
  const exclusive = facts === undefined ? new Set() : exclusiveClaims(pod, facts);
  return (other) => {
    if (maxPods !== undefined && count + 2n > quantityValue(maxPods)) return false;
    if (takesPortOf(other)) return false;
    if (
      exclusive.size > 0 &&
      other.metadata.namespace === pod.metadata.namespace &&
      claimNamesOf(other).some((name) => exclusive.has(name))
    )
      return false;
    const more = effectiveRequests(other);
    const after = wanted.map(([name, request]) => {
      const amount = addQuantities(used.get(name) ?? zeroQuantity, more.get(name) ?? zeroQuantity);
      return { name, amount, needed: addQuantities(amount, request) };
    });
    for (const { name, needed } of after) {
      if (compareQuantities(needed, allocatableOf(node, name) ?? zeroQuantity) > 0) return false;
    }
    for (const { name, amount } of after) used.set(name, amount);
    count++;
    return true;
  };
}
