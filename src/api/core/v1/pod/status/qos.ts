/** The quality-of-service class of a Pod. Source: Pod Quality of Service Classes, v1.33. */
import { addQuantities, compareQuantities, type Quantity, zeroQuantity } from '../../../../../machinery/quantity.ts';
import type { Pod } from '../../../../generated/types.ts';
import { specOf } from '../containers.ts';
import { countedDefers, resourceQuantity } from '../resources.ts';

export type QosClass = 'Guaranteed' | 'Burstable' | 'BestEffort';

const counted = ['cpu', 'memory'] as const;

/**
 * Guaranteed: all init, app and counted defer containers have cpu and memory limits, and the sums of their requests equal the sums of their
 * limits. BestEffort: there is no request or limit for cpu or memory. Burstable: all other Pods. Amounts of zero, and defer containers that
 * countedDefers() omits, are ignored.
 */
export function qosClass(pod: Pod): QosClass {
  const requests = new Map<string, Quantity>();
  const limits = new Map<string, Quantity>();
  let everyLimitSet = true;
  const spec = specOf(pod);
  for (const { resources } of [...(spec.initContainers ?? []), ...spec.containers, ...countedDefers(spec)]) {
    addCounted(requests, resources?.requests);
    everyLimitSet = addCounted(limits, resources?.limits) === counted.length && everyLimitSet;
  }
  if (requests.size === 0 && limits.size === 0) return 'BestEffort';
  const equal = [...requests].every(([name, request]) => {
    const limit = limits.get(name);
    return limit !== undefined && compareQuantities(limit, request) === 0;
  });
  return everyLimitSet && equal && requests.size === limits.size ? 'Guaranteed' : 'Burstable';
}

/** Returns how many of the amounts of cpu and memory are above zero. */
function addCounted(into: Map<string, Quantity>, texts: Record<string, string> | undefined): number {
  let found = 0;
  for (const name of counted) {
    const quantity = resourceQuantity(texts, name);
    if (quantity === undefined || compareQuantities(quantity, zeroQuantity) <= 0) continue;
    into.set(name, addQuantities(into.get(name) ?? zeroQuantity, quantity));
    found++;
  }
  return found;
}
