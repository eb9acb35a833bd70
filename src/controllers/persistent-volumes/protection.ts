/** Lets a claim that is being deleted go once no Pod uses it. Source: pvc-protection controller of v1.33 (behaviour). */
import { CLAIM_PROTECTION } from '../../api/core/v1/persistent-volume-claim/index.ts';
import type { PersistentVolumeClaim, Pod } from '../../api/generated/types.ts';
import type { ResourceClient } from '../../client/client.ts';
import { uses } from '../../scheduling/volume-claims.ts';

/** A Pod without a node does not hold a claim: the scheduler gives it none while the claim goes. */
export async function unprotectClaim(
  claim: PersistentVolumeClaim,
  claims: ResourceClient<PersistentVolumeClaim>,
  pods: ResourceClient<Pod>,
): Promise<void> {
  const { namespace, finalizers = [] } = claim.metadata;
  if (!finalizers.includes(CLAIM_PROTECTION)) return;
  const { items } = await pods.list({ ...(namespace === undefined ? {} : { namespace }) });
  if (items.some((pod) => pod.spec?.nodeName && uses(pod, claim))) return;
  const kept = finalizers.filter((each) => each !== CLAIM_PROTECTION);
  await claims.update({ ...claim, metadata: { ...claim.metadata, finalizers: kept } });
}
