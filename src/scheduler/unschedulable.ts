/** The Pods that did not fit when they were last tried, and the changes after which they are retried. */
import type { Pod } from '../api/generated/types.ts';
import { importantFirst } from '../scheduling/preemption.ts';
import { claimNamesOf } from '../scheduling/volume-claims.ts';

export interface Unschedulable {
  add(key: string): void;
  delete(key: string): void;
  /** Retries all Pods. */
  retryAll(): void;
  /** Retries the Pods that use claims, after a change of a volume or a storage class. */
  retryWithClaims(): void;
  /** Retries the Pods that use this claim. */
  retryWithClaim(namespace: string, name: string): void;
}

export interface UnschedulableOptions {
  /** Returns the Pod, or undefined if it no longer exists. */
  pod(key: string): Pod | undefined;
  retry(key: string): void;
}

/** All changes in one turn of the event loop cause one pass over the Pods; those of higher priority are retried first. */
export function createUnschedulable({ pod: find, retry }: UnschedulableOptions): Unschedulable {
  const keys = new Set<string>();
  let isPassScheduled = false;
  /** Which Pods the next pass retries; `named`: those that use one of the changed claims. */
  let affected: 'all' | 'withClaims' | 'named' = 'named';
  /** The keys (`namespace/name`) of the changed claims. */
  const claims = new Set<string>();

  const isAffected = (pod: Pod): boolean => {
    if (affected === 'all') return true;
    const names = claimNamesOf(pod);
    if (affected === 'withClaims') return names.length > 0;
    return names.some((name) => claims.has(`${pod.metadata.namespace}/${name}`));
  };
  const pass = (): void => {
    isPassScheduled = false;
    const found: [string, Pod][] = [];
    for (const key of keys) {
      const pod = find(key);
      if (pod !== undefined && isAffected(pod)) found.push([key, pod]);
    }
    affected = 'named';
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
    add: (key) => void keys.add(key),
    delete: (key) => void keys.delete(key),
    retryAll: () =>
      schedulePass(() => {
        affected = 'all';
      }),
    retryWithClaims: () =>
      schedulePass(() => {
        if (affected === 'named') affected = 'withClaims';
      }),
    retryWithClaim: (namespace, name) => schedulePass(() => void claims.add(`${namespace}/${name}`)),
  };
}
