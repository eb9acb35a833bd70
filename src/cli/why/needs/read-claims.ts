/** Reads the PersistentVolumeClaims for which a Pod waits. */
import type { CoreV1Event, PersistentVolumeClaim, Pod, StorageClass } from '../../../api/generated/types.ts';
import { EVENTS, PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES } from '../../../api/resources.ts';
import type { Client } from '../../../client/client.ts';
import { ApiError, isApiError } from '../../../machinery/status.ts';
import { claimNamesOf, isBound } from '../../../scheduling/volume-claims.ts';
import { waitsForClaims } from '../scheduling.ts';
import type { UnboundClaim } from '../subject.ts';

/**
 * Resolves with the existing claims of the Pod that are not bound; undefined if the Pod does not wait for claims, or if the user may not
 * read them.
 */
export async function readUnboundClaims(client: Client, pod: Pod): Promise<UnboundClaim[] | undefined> {
  if (!waitsForClaims(pod)) return undefined;
  const { namespace } = pod.metadata;
  const claims = client.resource<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIMS);
  const read = async (name: string): Promise<UnboundClaim[]> => {
    try {
      const claim = await claims.get(name, namespace);
      if (isBound(claim)) return [];
      const [events, storageClass] = await Promise.all([eventsOf(client, claim), classOf(client, claim)]);
      return [{ claim, events, storageClass }];
    } catch (error) {
      if (isApiError(error, 'NotFound')) return [];
      throw error;
    }
  };
  try {
    return (await Promise.all([...new Set(claimNamesOf(pod))].map(read))).flat();
  } catch (error) {
    // The claims only make the explanation more precise.
    if (error instanceof ApiError) return undefined;
    throw error;
  }
}

/** Resolves with undefined if the class does not exist, or if the user may not read StorageClasses. */
async function classOf(client: Client, { spec }: PersistentVolumeClaim): Promise<StorageClass | undefined> {
  if (!spec?.storageClassName) return undefined;
  return client
    .resource<StorageClass>(STORAGE_CLASSES)
    .get(spec.storageClassName)
    .catch((error: unknown) => {
      if (isApiError(error, 'NotFound') || isApiError(error, 'Forbidden')) return undefined;
      throw error;
    });
}

/** Resolves with none if the user may not read Events. */
async function eventsOf(client: Client, { metadata }: PersistentVolumeClaim): Promise<CoreV1Event[]> {
  const { namespace = '', uid } = metadata;
  const fieldSelector = `involvedObject.kind=PersistentVolumeClaim,involvedObject.uid=${uid}`;
  const { items } = await client
    .resource<CoreV1Event>(EVENTS)
    .list({ namespace, fieldSelector })
    .catch((error: unknown) => {
      if (isApiError(error, 'Forbidden')) return { items: [] };
      throw error;
    });
  return items;
}
