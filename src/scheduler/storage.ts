import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '../api/generated/types.ts';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES } from '../api/resources.ts';
import type { SharedInformers } from '../client/shared-informers.ts';
import type { VolumeFacts } from '../scheduling/volume-claims.ts';
import { volumeIndex } from '../scheduling/volume-search.ts';
import type { Unschedulable } from './unschedulable.ts';

export interface FollowedStorage {
  facts: VolumeFacts;
  synced: Promise<unknown>;
}

/** Runs until the signal aborts. A new or changed storage object causes a retry of the unschedulable Pods that may fit because of it. */
export function followStorage(
  informers: SharedInformers,
  signal: AbortSignal,
  { retryWithClaim, retryWithClaims }: Unschedulable,
): FollowedStorage {
  const claimChanged = ({ metadata }: PersistentVolumeClaim): void =>
    retryWithClaim(metadata.namespace as string, metadata.name);
  const claims = informers.follow<PersistentVolumeClaim>(
    PERSISTENT_VOLUME_CLAIMS,
    { signal },
    {
      added: claimChanged,
      updated: claimChanged,
    },
  );
  const index = volumeIndex();
  const volumes = informers.follow<PersistentVolume>(
    PERSISTENT_VOLUMES,
    { signal },
    {
      added(volume) {
        index.put(volume);
        retryWithClaims();
      },
      updated(volume, old) {
        index.remove(old);
        index.put(volume);
        retryWithClaims();
      },
      deleted: index.remove,
    },
  );
  const classes = informers.follow<StorageClass>(
    STORAGE_CLASSES,
    { signal },
    {
      added: retryWithClaims,
      updated: retryWithClaims,
    },
  );
  return {
    facts: {
      claim: (namespace, name) => claims.get(namespace, name),
      volume: (name) => volumes.get(undefined, name),
      search: () => index,
      storageClass: (name) => classes.get(undefined, name),
    },
    synced: Promise.all([claims.synced, volumes.synced, classes.synced]),
  };
}
