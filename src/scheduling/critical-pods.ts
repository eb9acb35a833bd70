/**
 * Room for a critical Pod on a node that is full: which others end for it. Pure.
 * Source: pkg/kubelet/preemption of v1.33 (who may be chosen, in which order; behaviour and wording).
 */

import { effectiveRequests } from '../api/core/v1/pod/resources.ts';
import { qosClass } from '../api/core/v1/pod/status/qos.ts';
import type { Pod } from '../api/generated/types.ts';

/** Source: priority of system-cluster-critical. */
export const CRITICAL_PRIORITY = 2_000_000_000;

/** The system needs it, or a file of the node wants it. What its annotations say does not count: anyone may write them. */
export const isCritical = ({ spec }: Pod, isStatic: boolean): boolean =>
  isStatic || (spec?.priority ?? 0) >= CRITICAL_PRIORITY;

/** What is missing, by resource, in billionths of the unit. */
export type Shortage = ReadonlyMap<string, bigint>;

const ONE = 1_000_000_000n;

/** What a Pod gives back when it ends. */
const given = (pod: Pod, resource: string): bigint =>
  resource === 'pods' ? ONE : (effectiveRequests(pod).get(resource)?.nano ?? 0n);

/** What is missing still when these have ended. */
export function shortageAfter(shortage: Shortage, ended: readonly Pod[]): Shortage {
  const left = new Map<string, bigint>();
  for (const [resource, missing] of shortage) {
    const rest = ended.reduce((sum, pod) => sum - given(pod, resource), missing);
    if (rest > 0n) left.set(resource, rest);
  }
  return left;
}

/** The sum of the squares of the parts that would be missing still: how little the end of this Pod helps. */
const distance = (pod: Pod, shortage: Shortage): number => {
  let sum = 0;
  for (const [resource, missing] of shortage) {
    const rest = missing - given(pod, resource);
    if (rest > 0n) sum += (Number(rest) / Number(missing)) ** 2;
  }
  return sum;
};

const isSmaller = (a: Pod, b: Pod): boolean => {
  for (const resource of ['memory', 'cpu']) {
    const [ofA, ofB] = [given(a, resource), given(b, resource)];
    if (ofA !== ofB) return ofA < ofB;
  }
  return false;
};

/** Of Pods that are enough together: few, and of those that help as much the smaller ones. */
function fewOf(pods: readonly Pod[], shortage: Shortage): Pod[] {
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
 * Those of the candidates that are to end so that nothing is missing: as few Guaranteed Pods as can be, then as few Burstable ones, then as
 * few others. undefined: all of them together are not enough.
 */
export function victimsFor(shortage: Shortage, candidates: readonly Pod[]): Pod[] | undefined {
  if (shortageAfter(shortage, candidates).size > 0) return undefined;
  const of = (name: string): Pod[] => candidates.filter((pod) => qosClass(pod) === name);
  const [bestEffort, burstable] = [of('BestEffort'), of('Burstable')];
  const guaranteed = fewOf(of('Guaranteed'), shortageAfter(shortage, [...bestEffort, ...burstable]));
  const fromBurstable = fewOf(burstable, shortageAfter(shortage, [...bestEffort, ...guaranteed]));
  const fromBestEffort = fewOf(bestEffort, shortageAfter(shortage, [...fromBurstable, ...guaranteed]));
  return [...fromBestEffort, ...fromBurstable, ...guaranteed];
}
