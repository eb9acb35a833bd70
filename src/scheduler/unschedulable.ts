/** The Pods that fitted nowhere when they were last tried, and what makes them worth another try. */
import type { Pod } from '../api/generated/types.ts';
import { importantFirst } from '../scheduling/preemption.ts';
import { claimNamesOf } from '../scheduling/volume-claims.ts';

export interface Unschedulable {
  add(key: string): void;
  delete(key: string): void;
  /** Something has changed that any Pod may have waited for. */
  retryAll(): void;
  /** Something of the storage has changed: Pods that use claims are tried again. */
  retryWithClaims(): void;
  /** One claim has changed. */
  retryWithClaim(namespace: string, name: string): void;
}

export interface UnschedulableOptions {
  /** undefined: there is no such Pod any more. */
  pod(key: string): Pod | undefined;
  tryAgain(key: string): void;
}

/** All changes of one turn of the event loop lead to one look at the Pods, the most important of which are tried first. */
export function createUnschedulable({ pod: find, tryAgain }: UnschedulableOptions): Unschedulable {
  const keys = new Set<string>();
  let looks = false;
  let wanted: 'all' | 'withClaims' | 'named' = 'named';
  /** The keys (`namespace/name`) of the claims that have changed. */
  const claims = new Set<string>();

  const isWanted = (pod: Pod): boolean => {
    if (wanted === 'all') return true;
    const names = claimNamesOf(pod);
    if (wanted === 'withClaims') return names.length > 0;
    return names.some((name) => claims.has(`${pod.metadata.namespace}/${name}`));
  };
  const look = (): void => {
    looks = false;
    const again: [string, Pod][] = [];
    for (const key of keys) {
      const pod = find(key);
      if (pod !== undefined && isWanted(pod)) again.push([key, pod]);
    }
    wanted = 'named';
    claims.clear();
    for (const [key] of again.sort(([, a], [, b]) => importantFirst(a, b))) tryAgain(key);
  };
  const afterChange = (note: () => void): void => {
    if (keys.size === 0) return;
    note();
    if (!looks) setImmediate(look);
    looks = true;
  };
  return {
    add: (key) => void keys.add(key),
    delete: (key) => void keys.delete(key),
    retryAll: () =>
      afterChange(() => {
        wanted = 'all';
      }),
    retryWithClaims: () =>
      afterChange(() => {
        if (wanted === 'named') wanted = 'withClaims';
      }),
    retryWithClaim: (namespace, name) => afterChange(() => void claims.add(`${namespace}/${name}`)),
  };
}
