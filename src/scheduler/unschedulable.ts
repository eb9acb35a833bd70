/** Remembers the Pods that fit on no node or wait for their claims to be bound, and retries them after changes that may help them. */
import type { Pod } from '../api/generated/types.ts';
import { importantFirst } from '../scheduling/preemption.ts';
import { claimNamesOf } from '../scheduling/volume-claims.ts';

/** Keys are NAMESPACE/NAME of Pods. */
export interface Unschedulable {
  /** Adds or updates a Pod. `dependsOnPods`: as dependsOnPods() of src/scheduling/pod-rules.ts. */
  add(key: string, options?: { dependsOnPods?: boolean }): void;
  delete(key: string): void;
  retryAll(): void;
  /** Must be called when domains, their numbers of Pods, or labels of Pods or namespaces have changed. */
  retryDependent(): void;
  /** Must be called when a volume or a storage class was added or changed. */
  retryWithClaims(): void;
  retryWithClaim(namespace: string, name: string): void;
}

export interface UnschedulableOptions {
  /** Returns undefined if the Pod no longer exists. */
  pod(key: string): Pod | undefined;
  retry(key: string): void;
}

/** All changes in one turn of the event loop cause a single pass over the Pods. Pods of higher priority are retried first. */
export function createUnschedulable({ pod: find, retry }: UnschedulableOptions): Unschedulable {
  const keys = new Set<string>();
  const dependent = new Set<string>();
  let isPassScheduled = false;
  /** The Pods that the next pass retries. `withClaims`: those that use any claim. `named`: those that use a claim in `claims`. */
  let affected: 'all' | 'withClaims' | 'named' = 'named';
  let isDependentAffected = false;
  /** NAMESPACE/NAME of the claims that have changed since the last pass. */
  const claims = new Set<string>();

  const isAffected = (key: string, pod: Pod): boolean => {
    if (affected === 'all' || (isDependentAffected && dependent.has(key))) return true;
    const names = claimNamesOf(pod);
    if (affected === 'withClaims') return names.length > 0;
    return names.some((name) => claims.has(`${pod.metadata.namespace}/${name}`));
  };
  const pass = (): void => {
    isPassScheduled = false;
    const found: [string, Pod][] = [];
    for (const key of keys) {
      const pod = find(key);
      if (pod !== undefined && isAffected(key, pod)) found.push([key, pod]);
    }
    affected = 'named';
    isDependentAffected = false;
    claims.clear();
    for (const [key] of found.sort(([, a], [, b]) => importantFirst(a, b))) retry(key);
  };
  const schedulePass = (mark: () => void): void => {
    if (keys.size === 0) return;
    mark();
    if (!isPassScheduled) setImmediate(pass);
    isPassScheduled = true;
  };
  return {
    add(key, { dependsOnPods = false } = {}) {
      keys.add(key);
      if (dependsOnPods) dependent.add(key);
      else dependent.delete(key);
    },
    delete(key) {
      keys.delete(key);
      dependent.delete(key);
    },
    retryAll: () =>
      schedulePass(() => {
        affected = 'all';
      }),
    retryDependent() {
      if (dependent.size === 0) return;
      schedulePass(() => {
        isDependentAffected = true;
      });
    },
    retryWithClaims: () =>
      schedulePass(() => {
        if (affected === 'named') affected = 'withClaims';
      }),
    retryWithClaim: (namespace, name) => schedulePass(() => void claims.add(`${namespace}/${name}`)),
  };
}
