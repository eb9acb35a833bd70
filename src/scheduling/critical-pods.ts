/**
 * Makes room for a critical Pod on a full node: chooses the Pods to evict. The functions are pure.
 * Source: pkg/kubelet/preemption of v1.33 (choice and order of the victims).
 */
import { effectiveRequests } from '../api/core/v1/pod/resources.ts';
import { qosClass } from '../api/core/v1/pod/status/qos.ts';
import type { Pod } from '../api/generated/types.ts';

/** The lowest priority of a critical Pod: that of the PriorityClass system-cluster-critical. */
export const CRITICAL_PRIORITY = 2_000_000_000;

/**
 * Whether the Pod is a static Pod or has a priority of at least CRITICAL_PRIORITY. Unlike in upstream, annotations do not make a Pod
 * critical, because any client can write them.
 */
export const isCritical = ({ spec }: Pod, isStatic: boolean): boolean =>
  isStatic || (spec?.priority ?? 0) >= CRITICAL_PRIORITY;

/** The missing amount of each resource that is insufficient, in billionths of the resource's unit. */
export type Shortage = ReadonlyMap<string, bigint>;

const ONE = 1_000_000_000n;

/** Returns the amount of the resource that is freed when the Pod terminates, in billionths of the unit. */
const amountOf = (pod: Pod, resource: string): bigint =>
  resource === 'pods' ? ONE : (effectiveRequests(pod).get(resource)?.nano ?? 0n);

/** Returns the shortage that remains once these Pods have terminated. */
export function shortageAfter(shortage: Shortage, terminated: readonly Pod[]): Shortage {
  const left = new Map<string, bigint>();
  for (const [resource, missing] of shortage) {
    const rest = terminated.reduce((sum, pod) => sum - amountOf(pod, resource), missing);
    if (rest > 0n) left.set(resource, rest);
  }
  return left;
}

/**
 * Returns the sum, over the missing resources, of the square of the fraction of the shortage that would remain if the Pod were evicted. A
 * smaller sum is better.
 */
const distance = (pod: Pod, shortage: Shortage): number => {
  let sum = 0;
  for (const [resource, missing] of shortage) {
    const rest = missing - amountOf(pod, resource);
    if (rest > 0n) sum += (Number(rest) / Number(missing)) ** 2;
  }
  return sum;
};

const isSmaller = (a: Pod, b: Pod): boolean => {
  for (const resource of ['memory', 'cpu']) {
    const [ofA, ofB] = [amountOf(a, resource), amountOf(b, resource)];
    if (ofA !== ofB) return ofA < ofB;
  }
  return false;
};

/**
 * Chooses a small subset of the Pods that covers the shortage; all Pods if even they do not cover it. Repeatedly adds the Pod that
 * reduces the shortage most, and among equal Pods the one with the smallest memory request, then the smallest CPU request.
 */
function smallSubset(pods: readonly Pod[], shortage: Shortage): Pod[] {
  const chosen = new Set<Pod>();
  for (let missing = shortage; missing.size > 0; missing = shortageAfter(shortage, [...chosen])) {
    const [first, ...others] = pods.filter((pod) => !chosen.has(pod));
    if (first === undefined) break;
    let best = first;
    for (const pod of others) {
      const nearer = distance(pod, missing) - distance(best, missing);
      if (nearer < 0 || (nearer === 0 && isSmaller(pod, best))) best = pod;
    }
    chosen.add(best);
  }
  return [...chosen];
}

/**
 * Chooses the candidates to evict to cover the shortage: few Guaranteed Pods, and only if all other Pods do not suffice, then few Burstable
 * Pods, then few BestEffort Pods (see smallSubset()). Returns undefined if evicting all candidates would not be enough.
 */
export function victimsFor(shortage: Shortage, candidates: readonly Pod[]): Pod[] | undefined {
  if (shortageAfter(shortage, candidates).size > 0) return undefined;
  const of = (name: string): Pod[] => candidates.filter((pod) => qosClass(pod) === name);
  const [bestEffort, burstable] = [of('BestEffort'), of('Burstable')];
  const guaranteed = smallSubset(of('Guaranteed'), shortageAfter(shortage, [...bestEffort, ...burstable]));
  const fromBurstable = smallSubset(burstable, shortageAfter(shortage, [...bestEffort, ...guaranteed]));
  const fromBestEffort = smallSubset(bestEffort, shortageAfter(shortage, [...fromBurstable, ...guaranteed]));
  return [...fromBestEffort, ...fromBurstable, ...guaranteed];
}
