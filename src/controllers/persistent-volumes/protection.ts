/** Lets a claim that is being deleted go once no Pod uses it. Source: pvc-protection controller of v1.33 (behavior). */
import { CLAIM_PROTECTION } from '../../api/core/v1/persistent-volume-claim/index.ts';
import type { PersistentVolumeClaim, Pod } from '../../api/generated/types.ts';
import type { ResourceClient } from '../../client/client.ts';
import type { Informer } from '../../client/informer.ts';
import { nextOwnTurn } from '../../platform/work-in-turns.ts';
import { claimNamesOf } from '../../scheduling/volume-claims.ts';
import { groupedKeys } from './grouped-keys.ts';
import { claimKey } from './storage.ts';

export interface ClaimProtection {
  /** The informer has heard of the Pod, or of its node. */
  put(pod: Pod): void;
  /** As it was put. */
  remove(pod: Pod): void;
  /** For a claim that is being deleted: it goes, unless a Pod holds it. */
  release(claim: PersistentVolumeClaim): Promise<void>;
}

/** The keys of the claims that the Pod holds. One without a node holds none: the scheduler gives it none while a claim goes. */
const heldBy = (pod: Pod): string[] => {
  const { namespace } = pod.metadata;
  if (!pod.spec?.nodeName) return [];
  return claimNamesOf(pod).map((name) => claimKey({ ...(namespace && { namespace }), name }));
};

/** `known`: what the informer has of the Pods that are put. */
export function createClaimProtection(
  claims: ResourceClient<PersistentVolumeClaim>,
  pods: ResourceClient<Pod>,
  known: Informer<Pod>['get'],
): ClaimProtection {
  const holders = groupedKeys<Pod>(({ metadata }) => metadata.uid ?? '', heldBy);
  /** Readings that have not begun, by namespace. */
  const readings = new Map<string, Promise<ReadonlySet<string>>>();

  /** Claims that Pods hold of which the informer has not heard. Begins after the call, once for all calls until then. */
  function heldUnheard(namespace: string): Promise<ReadonlySet<string>> {
    const reading =
      readings.get(namespace) ??
      nextOwnTurn().then(async () => {
        readings.delete(namespace);
        const { items } = await pods.list(namespace === '' ? {} : { namespace });
        const isHeard = ({ metadata: { name, resourceVersion } }: Pod): boolean =>
          known(namespace, name)?.metadata.resourceVersion === resourceVersion;
        return new Set(items.filter((pod) => !isHeard(pod)).flatMap(heldBy));
      });
    readings.set(namespace, reading);
    return reading;
  }

  return {
    put: holders.put,
    remove: holders.remove,
    async release(claim) {
      const { namespace = '', finalizers = [] } = claim.metadata;
      const key = claimKey(claim.metadata);
      if (!finalizers.includes(CLAIM_PROTECTION) || holders.has(key)) return;
      const unheard = await heldUnheard(namespace);
      if (unheard.has(key) || holders.has(key)) return;
      const kept = finalizers.filter((each) => each !== CLAIM_PROTECTION);
      await claims.update({ ...claim, metadata: { ...claim.metadata, finalizers: kept } });
    },
  };
}
