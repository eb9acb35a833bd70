/**
 * Reconciles a volume: sets its phase, reclaims a released volume whose reclaim policy is Delete, and removes the finalizer of a
 * terminating volume to which no claim is bound. Source: persistentvolume and pv-protection controllers of v1.33 (behavior).
 */

import { VOLUME_PROTECTION } from '../../api/core/v1/persistent-volume/index.ts';
import type { PersistentVolume } from '../../api/generated/types.ts';
import { isApiError } from '../../machinery/status.ts';
import { LOCAL_PATH_PROVISIONER, PROVISIONED_BY } from './local-path.ts';
import { readNow, type Storage } from './storage.ts';

export async function reconcileVolume(storage: Storage, found: PersistentVolume): Promise<void> {
  const volume = await withPhase(storage, found, await phaseOf(storage, found));
  const { phase } = volume.status ?? {};
  const isReclaimed = phase === 'Released' && volume.spec?.persistentVolumeReclaimPolicy === 'Delete';
  if (volume.metadata.deletionTimestamp === undefined) {
    if (isReclaimed) await reclaim(storage, volume);
  } else if (phase !== 'Bound') {
    // The content is also deleted if a client deleted the volume before its claim.
    if (isReclaimed && isProvisionedHere(storage, volume)) await removeFolder(storage, volume);
    await unprotect(storage, volume);
  }
}

async function phaseOf(storage: Storage, { spec, status }: PersistentVolume): Promise<string> {
  const reference = spec?.claimRef;
  // A claimRef without a UID reserves the volume for a claim that may not exist yet.
  if (reference === undefined || !reference.uid) return 'Available';
  const { namespace = '', name = '', uid } = reference;
  const known = storage.claims.get(namespace, name);
  // Read the API before a volume counts as Released: the cache may be stale, and deleted data cannot be restored.
  const claim = known?.metadata.uid === uid ? known : await readNow(storage.claimClient, name, namespace);
  if (claim?.metadata.uid === uid) return 'Bound';
  return status?.phase === 'Failed' ? 'Failed' : 'Released';
}

async function withPhase(storage: Storage, volume: PersistentVolume, phase: string): Promise<PersistentVolume> {
  if (volume.status?.phase === phase) return volume;
  return storage.volumeClient.updateStatus({ ...volume, status: { phase } });
}

async function unprotect({ volumeClient }: Storage, volume: PersistentVolume): Promise<void> {
  const finalizers = volume.metadata.finalizers ?? [];
  if (!finalizers.includes(VOLUME_PROTECTION)) return;
  const kept = finalizers.filter((each) => each !== VOLUME_PROTECTION);
  await volumeClient.update({ ...volume, metadata: { ...volume.metadata, finalizers: kept } });
}

const isProvisionedHere = (
  { folders }: Storage,
  { metadata: { name, annotations = {} }, spec }: PersistentVolume,
): boolean => annotations[PROVISIONED_BY] === LOCAL_PATH_PROVISIONER && spec?.local?.path === folders.path(name);

async function removeFolder({ folders, events }: Storage, volume: PersistentVolume): Promise<void> {
  await folders.remove(volume.metadata.name).catch((error: Error) => {
    events.event(volume, 'Warning', 'VolumeFailedDelete', error.message);
    throw error;
  });
}

/**
 * Returns why the content of the volume is not deleted. The folder of a restored volume may belong to another engine, which may still use
 * it.
 */
function undeletable({ folders }: Storage, { metadata: { name, annotations = {} }, spec }: PersistentVolume): string {
  const path = annotations[PROVISIONED_BY] === LOCAL_PATH_PROVISIONER ? spec?.local?.path : undefined;
  return path === undefined
    ? `error getting deleter volume plugin for volume ${JSON.stringify(name)}: no deletable volume plugin matched`
    : `the folder ${path} is kept, because it is not ${folders.path(name)}, the folder of this volume in the data folder of this engine: if no other engine uses it, delete it, then delete the PersistentVolume`;
}

/** Deletes the content of a volume that this controller provisioned, then the volume. Other volumes get the phase Failed. */
async function reclaim(storage: Storage, volume: PersistentVolume): Promise<void> {
  const { name, uid } = volume.metadata;
  if (!isProvisionedHere(storage, volume)) {
    const message = undeletable(storage, volume);
    storage.events.event(volume, 'Warning', 'VolumeFailedDelete', message);
    await storage.volumeClient.updateStatus({ ...volume, status: { phase: 'Failed', message } });
    return;
  }
  await removeFolder(storage, volume);
  try {
    await storage.volumeClient.delete(name, undefined, { preconditions: { uid } });
  } catch (error) {
    if (!isApiError(error, 'NotFound') && !isApiError(error, 'Conflict')) throw error;
  }
}
