/** Reads the PersistentVolumeClaims for which a Pod waits, and the PersistentVolumes that fit or do not fit. */
import type {
  CoreV1Event,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  StorageClass,
} from '../../../api/generated/types.ts';
import { EVENTS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES } from '../../../api/resources.ts';
import type { Client } from '../../../client/client.ts';
import { ApiError, isApiError } from '../../../machinery/status.ts';
import { claimNamesOf, isBound, NO_PROVISIONER } from '../../../scheduling/volume-claims.ts';
import { hasDistantVolume, waitsForClaims } from '../scheduling.ts';
import type { UnboundClaim } from '../subject.ts';

/**
 * Returns a function that resolves with the existing claims of a Pod that are not bound; with undefined if the Pod does not wait for
 * claims, or if the user may not read them. The PersistentVolumes are read once, also for several Pods.
 */
export function unboundClaimsReader(client: Client): (pod: Pod) => Promise<UnboundClaim[] | undefined> {
  let allVolumes: Promise<PersistentVolume[] | undefined> | undefined;
  return async (pod) => {
    if (!waitsForClaims(pod)) return undefined;
    const read = async (name: string): Promise<UnboundClaim[]> => {
      const claim = await claimOf(client, pod, name);
      if (claim === undefined || isBound(claim)) return [];
      const [events, storageClass] = await Promise.all([eventsOf(client, claim), classOf(client, claim)]);
      const isByHand = storageClass === undefined || storageClass.provisioner === NO_PROVISIONER;
      if (!isByHand && !claim.spec?.volumeName) return [{ claim, events, storageClass }];
      allVolumes ??= volumesOf(client);
      return [{ claim, events, storageClass, volumes: await allVolumes }];
    };
    return unlessRefused(async () => (await Promise.all([...new Set(claimNamesOf(pod))].map(read))).flat());
  };
}

/**
 * Resolves with the PersistentVolumes of the Pod, if one of them keeps the Pod from a node; with undefined for other Pods, or if the user
 * may not read them.
 */
export async function readBoundVolumes(client: Client, pod: Pod): Promise<PersistentVolume[] | undefined> {
  if (!hasDistantVolume(pod)) return undefined;
  const read = async (name: string): Promise<PersistentVolume[]> => {
    const claim = await claimOf(client, pod, name);
    if (claim === undefined || !isBound(claim)) return [];
    return [await client.resource<PersistentVolume>(PERSISTENT_VOLUMES).get(claim.spec?.volumeName ?? '')];
  };
  return unlessRefused(async () => (await Promise.all([...new Set(claimNamesOf(pod))].map(read))).flat());
}

/** The claims and volumes only make the explanation more precise. */
async function unlessRefused<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof ApiError) return undefined;
    throw error;
  }
}

const volumesOf = (client: Client): Promise<PersistentVolume[] | undefined> =>
  unlessRefused(async () => (await client.resource<PersistentVolume>(PERSISTENT_VOLUMES).list({})).items);

/** Resolves with undefined if the claim does not exist. */
async function claimOf(client: Client, { metadata }: Pod, name: string): Promise<PersistentVolumeClaim | undefined> {
  try {
    return await client.resource<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIMS).get(name, metadata.namespace);
  } catch (error) {
    if (isApiError(error, 'NotFound')) return undefined;
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
