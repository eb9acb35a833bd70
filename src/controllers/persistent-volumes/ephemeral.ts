/**
 * Creates and deletes the claims of a Pod's ephemeral volumes. Source: ephemeral controller of v1.33 (behavior), except that upstream's
 * garbage collector deletes the claims.
 */
import type { PersistentVolumeClaim, Pod } from '../../api/generated/types.ts';
import { defined } from '../../machinery/drop-undefined.ts';
import { isApiError, isNamespaceTerminating } from '../../machinery/status.ts';
import { claimNameOf, isOwnedBy } from '../../scheduling/volume-claims.ts';
import { readNow, type Storage } from './storage.ts';

export async function ensureEphemeralClaims(pod: Pod, { claimClient, claims, events }: Storage): Promise<void> {
  const { name: podName, namespace = '', uid = '', deletionTimestamp } = pod.metadata;
  if (deletionTimestamp !== undefined) return;
  for (const volume of pod.spec?.volumes ?? []) {
    const template = volume.ephemeral?.volumeClaimTemplate;
    const name = claimNameOf(pod, volume);
    if (template === undefined || name === undefined) continue;
    const report = (problem: string): void =>
      events.event(pod, 'Warning', 'FailedBinding', `ephemeral volume ${volume.name}: ${problem}`);
    const found = claims.get(namespace, name) ?? (await readNow(claimClient, name, namespace));
    if (found !== undefined) {
      if (!isOwnedBy(found, pod))
        report(`PVC ${namespace}/${name} was not created for pod ${namespace}/${podName} (pod is not owner)`);
      continue;
    }
    const owner = { apiVersion: 'v1', kind: 'Pod', name: podName, uid, controller: true, blockOwnerDeletion: true };
    const { labels, annotations } = template.metadata ?? {};
    const claim: PersistentVolumeClaim = {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: {
        name,
        namespace,
        ownerReferences: [owner],
        ...defined({ labels, annotations }),
      },
      spec: template.spec,
    };
    try {
      await claimClient.create(claim);
    } catch (error) {
      // In a namespace that is being deleted, every create fails, and the Pod is about to be deleted.
      if (isApiError(error, 'AlreadyExists') || isNamespaceTerminating(error)) continue;
      report(`create PVC ${name}: ${(error as Error).message}`);
      throw error;
    }
  }
}

/** Deletes the claims that a deleted Pod owned. `uid`: the UID of the Pod. */
export async function deleteOwnClaims(
  namespace: string,
  uid: string,
  { claimClient, claims, claimsByOwner }: Storage,
): Promise<void> {
  for (const key of claimsByOwner.keysOf(uid)) {
    const [ofNamespace, name] = key.split('/') as [string, string];
    const metadata = claims.get(ofNamespace, name)?.metadata;
    if (ofNamespace !== namespace || metadata === undefined || metadata.deletionTimestamp !== undefined) continue;
    try {
      await claimClient.delete(metadata.name, namespace, { preconditions: { uid: metadata.uid ?? '' } });
    } catch (error) {
      if (!isApiError(error, 'NotFound') && !isApiError(error, 'Conflict')) throw error;
    }
  }
}
