/**
 * Binds claims to volumes, provisions volumes of the class local-path, and reclaims volumes whose claims are gone.
 *
 * Reads: persistentvolumes, persistentvolumeclaims, storageclasses, nodes, pods. Writes: persistentvolumes and
 * persistentvolumeclaims with their status and finalizers; claims of ephemeral volumes (create, delete); the class
 * local-path, if it is missing; folders, through VolumeFolders.
 * Invariants:
 *  1. A volume is reserved for a claim before the claim is bound to it, and for one claim only.
 *  2. A claim is deleted only when no Pod with a node uses it, a volume only when no claim is bound to it.
 *  3. Nothing is deleted because of the informers' caches alone: the API is read first.
 * Source: upstream's persistentvolume, pvc-protection, pv-protection and ephemeral controllers of v1.33 (behavior).
 */
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass } from '../../api/generated/types.ts';
import { NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, STORAGE_CLASSES } from '../../api/resources.ts';
import { createEventRecorder } from '../../client/events.ts';
import { createInformer, type Informer } from '../../client/informer.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import { isApiError } from '../../machinery/status.ts';
import { claimNamesOf } from '../../scheduling/volume-claims.ts';
import { volumeIndex } from '../../scheduling/volume-search.ts';
import type { ControllerOptions } from '../controller.ts';
import { reconcileClaim } from './claims.ts';
import { deleteOwnClaims, ensureEphemeralClaims } from './ephemeral.ts';
import { groupedKeys } from './grouped-keys.ts';
import { localPathClass, type VolumeFolders, volumeNameFor } from './local-path.ts';
import { createClaimProtection } from './protection.ts';
import { claimKey, controllersOf, readNow, type Storage } from './storage.ts';
import { reconcileVolume } from './volumes.ts';

export async function startPersistentVolumes(options: ControllerOptions & { folders: VolumeFolders }): Promise<void> {
  const { client, timers, log, signal, folders } = options;
  const podClient = client.resource<Pod>(PODS);
  const claimClient = client.resource<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIMS);
  const volumeClient = client.resource<PersistentVolume>(PERSISTENT_VOLUMES);
  const classClient = client.resource<StorageClass>(STORAGE_CLASSES);
  const informing = { log, timers, signal };
  /** Resolves once all informers have synced; no key is processed before. */
  const synced = Promise.withResolvers<void>();
  const queueOf = (name: string, process: (key: string) => Promise<void>) =>
    createWorkQueue({
      name,
      process: async (key) => {
        await synced.promise;
        // NotFound is success: the object was deleted meanwhile, and the informer queues the key again.
        await process(key).catch((error: unknown) => {
          if (!isApiError(error, 'NotFound')) throw error;
        });
      },
      ...informing,
    });
  const claimQueue = queueOf('claims', syncClaim);
  const volumeQueue = queueOf('volumes', syncVolume);
  const podQueue = queueOf('ephemeral-claims', syncPod);
  const folderQueue = queueOf('unused-folders', syncFolder);

  const search = volumeIndex();
  const claimsByVolume = groupedKeys<PersistentVolumeClaim>(
    ({ metadata }) => claimKey(metadata),
    ({ spec }) => [spec?.volumeName ?? ''],
  );
  const claimsByOwner = groupedKeys<PersistentVolumeClaim>(
    ({ metadata }) => claimKey(metadata),
    ({ metadata }) => controllersOf(metadata).map(({ uid }) => uid),
  );
  const volumesByClaim = groupedKeys<PersistentVolume>(
    ({ metadata }) => metadata.name,
    ({ spec }) => [spec?.claimRef?.uid ?? ''],
  );
  const claimChanged = ({ metadata, spec }: PersistentVolumeClaim): void => {
    claimQueue.add(claimKey(metadata));
    if (spec?.volumeName) volumeQueue.add(spec.volumeName);
  };
  const claims = createInformer(claimClient, informing, {
    added(claim) {
      claimsByVolume.put(claim);
      claimsByOwner.put(claim);
      claimChanged(claim);
      // Its Pod may have been deleted while no engine was running.
      const { namespace } = claim.metadata;
      for (const { kind, name, uid } of controllersOf(claim.metadata)) {
        if (kind === 'Pod') podQueue.add(`${namespace}/${name}/${uid}`);
      }
    },
    updated(claim, old) {
      claimsByVolume.remove(old);
      claimsByOwner.remove(old);
      claimsByVolume.put(claim);
      claimsByOwner.put(claim);
      claimChanged(claim);
    },
    deleted(claim) {
      claimsByVolume.remove(claim);
      claimsByOwner.remove(claim);
      claimChanged(claim);
      if (!claim.spec?.volumeName) folderQueue.add(volumeNameFor(claim));
      // A volume may be reserved for the claim although the claim does not name it yet.
      for (const name of volumesByClaim.keysOf(claim.metadata.uid ?? '')) volumeQueue.add(name);
    },
  });
  const enqueueClaimsOf = (volumeName: string): void => {
    for (const key of claimsByVolume.keysOf(volumeName)) claimQueue.add(key);
  };
  let isRetryScheduled = false;
  /** Retries the claims without a volume, once for all changes in one turn of the event loop. */
  const retryUnboundClaims = (): void => {
    if (isRetryScheduled) return;
    isRetryScheduled = true;
    setImmediate(() => {
      isRetryScheduled = false;
      enqueueClaimsOf('');
    });
  };
  const volumeChanged = ({ metadata, spec }: PersistentVolume): void => {
    volumeQueue.add(metadata.name);
    if (spec?.claimRef !== undefined) claimQueue.add(claimKey(spec.claimRef));
    else {
      retryUnboundClaims();
      enqueueClaimsOf(metadata.name);
    }
  };
  const volumes = createInformer(volumeClient, informing, {
    added(volume) {
      search.put(volume);
      volumesByClaim.put(volume);
      volumeChanged(volume);
    },
    updated(volume, old) {
      search.remove(old);
      volumesByClaim.remove(old);
      search.put(volume);
      volumesByClaim.put(volume);
      volumeChanged(volume);
    },
    deleted(volume) {
      search.remove(volume);
      volumesByClaim.remove(volume);
      const { spec } = volume;
      if (spec?.claimRef !== undefined) claimQueue.add(claimKey(spec.claimRef));
    },
  });
  const classes = createInformer(classClient, informing, { added: retryUnboundClaims, updated: retryUnboundClaims });
  const nodes = createInformer<Node>(client.resource(NODES), informing, {});
  const podKey = ({ metadata }: Pod): string => `${metadata.namespace}/${metadata.name}/${metadata.uid}`;
  const hasEphemeral = ({ spec }: Pod): boolean =>
    (spec?.volumes ?? []).some(({ ephemeral }) => ephemeral !== undefined);
  const protection = createClaimProtection(claimClient, podClient, (namespace, name) => pods.get(namespace, name));
  const pods: Informer<Pod> = createInformer<Pod>(podClient, informing, {
    added: (pod) => {
      protection.put(pod);
      if (hasEphemeral(pod)) podQueue.add(podKey(pod));
    },
    updated: (pod, old) => {
      // The volumes of a Pod are immutable; only its binding to a node matters here.
      if (pod.spec?.nodeName === old.spec?.nodeName) return;
      protection.remove(old);
      protection.put(pod);
    },
    deleted: (pod) => {
      protection.remove(pod);
      if (hasEphemeral(pod)) podQueue.add(podKey(pod));
      const { namespace } = pod.metadata;
      for (const name of claimNamesOf(pod)) claimQueue.add(claimKey({ namespace, name }));
    },
  });
  const events = createEventRecorder(client, { component: 'persistentvolume-controller', ...informing });
  const storage: Storage = {
    claims,
    claimsByOwner,
    volumes,
    search,
    classes,
    nodes,
    claimClient,
    volumeClient,
    folders,
    events,
  };

  await Promise.all([claims, volumes, classes, nodes, pods].map((informer) => informer.synced));
  if (classes.get(undefined, localPathClass.metadata.name) === undefined) await ensureClass();
  synced.resolve();

  async function syncClaim(key: string): Promise<void> {
    const [namespace, name] = key.split('/') as [string, string];
    const claim = claims.get(namespace, name);
    if (claim === undefined) return;
    if (claim.metadata.deletionTimestamp !== undefined) await protection.release(claim);
    else await reconcileClaim(storage, claim);
  }

  async function syncVolume(name: string): Promise<void> {
    const volume = volumes.get(undefined, name);
    if (volume !== undefined) await reconcileVolume(storage, volume);
  }

  /** Removes the folder of a deleted claim: an engine may have died after it created the folder and before the volume. */
  async function syncFolder(name: string): Promise<void> {
    const volume = volumes.get(undefined, name) ?? (await readNow(volumeClient, name));
    if (volume === undefined) await folders.removeUnused(name);
  }

  async function syncPod(key: string): Promise<void> {
    const [namespace, name, uid] = key.split('/') as [string, string, string];
    const pod = pods.get(namespace, name) ?? (await readNow(podClient, name, namespace));
    if (pod?.metadata.uid === uid) await ensureEphemeralClaims(pod, storage);
    else await deleteOwnClaims(namespace, uid, storage);
  }

  async function ensureClass(): Promise<void> {
    try {
      await classClient.create(localPathClass);
    } catch (error) {
      if (!isApiError(error, 'AlreadyExists')) throw error;
    }
  }
}
