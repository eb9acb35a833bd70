/** The scheduler's informers of claims, volumes and storage classes, which provide the storage objects for scheduling decisions. */
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '../api/generated/types.ts';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES } from '../api/resources.ts';
import type { Client } from '../client/client.ts';
import { createInformer, type InformerOptions } from '../client/informer.ts';
import type { VolumeFacts } from '../scheduling/volume-claims.ts';
import { volumeIndex } from '../scheduling/volume-search.ts';
import type { Unschedulable } from './unschedulable.ts';

export interface WatchedStorage {
  facts: VolumeFacts;
  /** Resolves once all three informers have synced. */
  synced: Promise<unknown>;
}

/** Starts the informers. A new or changed storage object causes a retry of the unschedulable Pods that may fit because of it. */
export function watchStorage(
  client: Client,
  informing: InformerOptions,
  { retryWithClaim, retryWithClaims }: Unschedulable,
): WatchedStorage {
  const claimChanged = ({ metadata }: PersistentVolumeClaim): void =>
    retryWithClaim(metadata.namespace as string, metadata.name);
  const claims = createInformer(client.resource<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIMS), informing, {
    added: claimChanged,
    updated: claimChanged,
  });
  const index = volumeIndex();
  const volumes = createInformer(client.resource<PersistentVolume>(PERSISTENT_VOLUMES), informing, {
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
  });
  const classes = createInformer(client.resource<StorageClass>(STORAGE_CLASSES), informing, {
    added: retryWithClaims,
    updated: retryWithClaims,
  });
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
