/**
 * Computes the requests of Pods and the resources of a node. Amounts are exact, in billionths of the unit.
 * Source: the scheduler plugin NodeResourcesFit of v1.33 (behavior).
 */
import { effectiveRequests, resourceQuantity } from '../api/core/v1/pod/resources.ts';
import { hasEnded } from '../api/core/v1/pod/status/final-phase.ts';
import type { Node, Pod } from '../api/generated/types.ts';
import { addQuantities, type Quantity, zeroQuantity } from '../machinery/quantity.ts';

/**
 * Returns the node's allocatable amount of the resource, or its capacity if the node reports no allocatable amounts; undefined if the node
 * does not have the resource.
 */
export const allocatableOf = ({ status }: Node, name: string): Quantity | undefined =>
  resourceQuantity(status?.allocatable ?? status?.capacity, name);

/** Returns the Pod's requests, except requests of zero, which always fit. */
export const wantedBy = (pod: Pod): [name: string, amount: Quantity][] =>
  [...effectiveRequests(pod)].filter(([, { nano }]) => nano > 0n);

/** Returns the sum of the Pods' requests. Terminated Pods are ignored. */
export const requestedBy = (pods: readonly Pod[], name: string): Quantity =>
  pods
    .filter((pod) => !hasEnded(pod))
    .reduce((sum, pod) => addQuantities(sum, effectiveRequests(pod).get(name) ?? zeroQuantity), zeroQuantity);
