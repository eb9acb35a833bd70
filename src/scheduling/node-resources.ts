/** What Pods take of a node, and what it has. Amounts are exact, in billionths of the unit. Source: v1.33. */

import { effectiveRequests, resourceQuantity } from '../api/core/v1/pod/resources.ts';
import { hasEnded } from '../api/core/v1/pod/status/phase.ts';
import type { Node, Pod } from '../api/generated/types.ts';
import { addQuantities, type Quantity, zeroQuantity } from '../machinery/quantity.ts';

/** Of its allocatable resources, or of its capacity where the node does not say. */
export const allocatableOf = ({ status }: Node, name: string): Quantity | undefined =>
  resourceQuantity(status?.allocatable ?? status?.capacity, name);

/** What the Pod asks a node for. A request of zero always fits. */
export const wantedBy = (pod: Pod): [name: string, amount: Quantity][] =>
  [...effectiveRequests(pod)].filter(([, { nano }]) => nano > 0n);

/** The sum of the Pods' effective requests of one resource: they may have many that nobody asks for. */
export const requestedBy = (pods: readonly Pod[], name: string): Quantity =>
  pods
    .filter((pod) => !hasEnded(pod))
    .reduce((sum, pod) => addQuantities(sum, effectiveRequests(pod).get(name) ?? zeroQuantity), zeroQuantity);
