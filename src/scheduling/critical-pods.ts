/**
 * Chooses the Pods to evict so that a critical Pod fits on a full node. The functions are pure.
 * Source: pkg/kubelet/preemption of v1.33 (choice and order of the victims).
 */
import { effectiveRequests } from '../api/core/v1/pod/resources.ts';
import { qosClass } from '../api/core/v1/pod/status/qos.ts';
import type { Pod } from '../api/generated/types.ts';

/** The lowest priority of a critical Pod: the priority of the PriorityClass system-cluster-critical. */
export const CRITICAL_PRIORITY = 2_000_000_000;

/** Unlike in upstream, annotations do not make a Pod critical, because any client can write them. */
export const isCritical = ({ spec }: Pod, isStatic: boolean): boolean =>
  isStatic || (spec?.priority ?? 0) >= CRITICAL_PRIORITY;

/** The missing amount of each insufficient resource, in billionths of the resource's unit. */
export type Shortage = ReadonlyMap<string, bigint>;

const ONE = 1_000_000_000n;

/** Returns the requested amount in billionths of the unit. */
const amountOf = (pod: Pod, resource: string): bigint =>
  resource === 'pods' ? ONE : (effectiveRequests(pod).get(resource)?.nano ?? 0n);

export function shortageAfter(shortage: Shortage, terminated: readonly Pod[]): Shortage {
  const left = new Map<string, bigint>();
  for (const [resource, missing] of shortage) {
    const rest = terminated.reduce((sum, pod) => sum - amountOf(pod, resource), missing);
    if (rest > 0n) left.set(resource, rest);
  }
  return left;
}

/** Rates a victim, lower is better: for each missing resource, the fraction of the shortage that would remain is squared and added. */
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
 * Chooses few Pods that cover the shortage; all Pods if they do not cover it. Greedy: repeatedly adds the Pod that reduces the shortage
 * most. Among equal Pods, the smallest memory request decides, then the smallest CPU request.
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
 * Chooses few victims that cover the shortage: Guaranteed Pods only if all others do not suffice, and Burstable Pods only if BestEffort
 * Pods do not suffice. Returns undefined if all candidates together do not suffice.
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
