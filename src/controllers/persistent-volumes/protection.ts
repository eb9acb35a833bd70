/** Removes the finalizer of a terminating claim when no bound Pod uses the claim. Source: pvc-protection controller of v1.33 (behavior). */

import { CLAIM_PROTECTION } from '../../api/core/v1/persistent-volume-claim/index.ts';
import type { PersistentVolumeClaim, Pod } from '../../api/generated/types.ts';
import type { ResourceClient } from '../../client/client.ts';
import type { Informer } from '../../client/informer.ts';
import { uidOf } from '../../machinery/meta.ts';
import { nextOwnTurn } from '../../platform/work-in-turns.ts';
import { claimNamesOf } from '../../scheduling/volume-claims.ts';
import { groupedKeys } from './grouped-keys.ts';
import { claimKey } from './storage.ts';

export interface ClaimProtection {
  /** Records which claims the Pod uses. Must be called again when the Pod is bound. */
  put(pod: Pod): void;
  /** `pod` must be the version that was passed to put(). */
  remove(pod: Pod): void;
  /** Removes the finalizer of a terminating claim, unless a bound Pod uses the claim. */
  release(claim: PersistentVolumeClaim): Promise<void>;
}

/**
 * Returns the keys of the claims that the Pod uses; none for a Pod that is not bound, because the scheduler does not bind a Pod whose claim
 * is terminating.
 */
const usedBy = (pod: Pod): string[] => {
  const { namespace } = pod.metadata;
  if (!pod.spec?.nodeName) return [];
  return claimNamesOf(pod).map((name) => claimKey({ namespace, name }));
};

export function createClaimProtection(
  claims: ResourceClient<PersistentVolumeClaim>,
  pods: ResourceClient<Pod>,
  known: Informer<Pod>['get'],
): ClaimProtection {
  const users = groupedKeys<Pod>(uidOf, usedBy);
  /**
   * By namespace: the pending result of usedByUnseenPods(). The entry is removed just before the Pods are listed, so that later calls list
   * them again.
   */
  const readings = new Map<string, Promise<ReadonlySet<string>>>();

  /**
   * Resolves with the keys of the claims of Pods whose current version the informer has not received. The Pods are listed in a later turn
   * of the event loop, once for all calls for the namespace before that turn.
   */
  function usedByUnseenPods(namespace: string): Promise<ReadonlySet<string>> {
    const reading =
      readings.get(namespace) ??
      nextOwnTurn().then(async () => {
        readings.delete(namespace);
        const { items } = await pods.list(namespace === '' ? {} : { namespace });
        const isSeen = ({ metadata: { name, resourceVersion } }: Pod): boolean =>
          known(namespace, name)?.metadata.resourceVersion === resourceVersion;
        return new Set(items.filter((pod) => !isSeen(pod)).flatMap(usedBy));
      });
    readings.set(namespace, reading);
    return reading;
  }

  return {
    put: users.put,
    remove: users.remove,
    async release(claim) {
      const { namespace = '', finalizers = [] } = claim.metadata;
      const key = claimKey(claim.metadata);
      if (!finalizers.includes(CLAIM_PROTECTION) || users.has(key)) return;
      const unseen = await usedByUnseenPods(namespace);
      if (unseen.has(key) || users.has(key)) return;
      const kept = finalizers.filter((each) => each !== CLAIM_PROTECTION);
      await claims.update({ ...claim, metadata: { ...claim.metadata, finalizers: kept } });
    },
  };
}
