/**
 * Binds claims to volumes, provisions volumes for classes whose provisioner is lifepod.io/local-path, and reclaims volumes whose
 * claims were deleted.
 *
 * Reads: persistentvolumes, persistentvolumeclaims, storageclasses, nodes, pods. Writes: persistentvolumes and
 * persistentvolumeclaims with their status and finalizers; claims of ephemeral volumes (create, delete); the class
 * local-path, if it is missing; events; folders, through VolumeFolders.
 * Invariants:
 *  1. A volume is reserved for a claim before the claim is bound to it, and for one claim only.
 *  2. The finalizer of a claim is removed only when no bound Pod uses the claim, and the finalizer of a volume only when no
 *     claim is bound to the volume.
 *  3. Nothing is deleted only because another object is missing in an informer's cache: the API is read first.
 * Source: upstream's persistentvolume, pvc-protection, pv-protection and ephemeral controllers of v1.33 (behavior).
 */
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass } from '../../api/generated/types.ts';
import { NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, STORAGE_CLASSES } from '../../api/resources.ts';
import type { ResourceClient } from '../../client/client.ts';
import { createEventRecorder } from '../../client/events.ts';
import type { Informer } from '../../client/informer.ts';
import { createWorkQueue, type WorkQueue } from '../../client/work-queue.ts';
import { isApiError } from '../../machinery/status.ts';
import type { ControllerOptions } from '../controller.ts';
import {
  claimHandlers,
  podHandlers,
  type Queues,
  storageIndexes,
  unboundClaimsRetry,
  volumeHandlers,
} from './changes.ts';
import { reconcileClaim } from './claims.ts';
import { deleteOwnClaims, ensureEphemeralClaims } from './ephemeral.ts';
import { localPathClass, type VolumeFolders } from './local-path.ts';
import { type ClaimProtection, createClaimProtection } from './protection.ts';
import { readNow, type Storage } from './storage.ts';
import { reconcileVolume } from './volumes.ts';

interface Controller extends Storage {
  pods: Informer<Pod>;
  podClient: ResourceClient<Pod>;
  protection: ClaimProtection;
}

export async function startPersistentVolumes(options: ControllerOptions & { folders: VolumeFolders }): Promise<void> {
  const { client, informers, timers, log, signal, folders } = options;
  const podClient = client.resource<Pod>(PODS);
  const claimClient = client.resource<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIMS);
  const volumeClient = client.resource<PersistentVolume>(PERSISTENT_VOLUMES);
  const classClient = client.resource<StorageClass>(STORAGE_CLASSES);
  const working = { log, timers, signal };
  /** Resolves once all informers have synced and the class local-path exists. No key is processed before. */
  const synced = Promise.withResolvers<void>();
  const queueOf = (name: string, process: (controller: Controller, key: string) => Promise<void>): WorkQueue =>
    createWorkQueue({
      name,
      process: async (key) => {
        await synced.promise;
        // The object was deleted while its key was processed. The informer reports the deletion.
        await process(controller, key).catch((error: unknown) => {
          if (!isApiError(error, 'NotFound')) throw error;
        });
      },
      ...working,
    });
  const queues: Queues = {
    claims: queueOf('claims', syncClaim),
    volumes: queueOf('volumes', syncVolume),
    ephemeralClaims: queueOf('ephemeral-claims', syncPod),
    unusedFolders: queueOf('unused-folders', syncFolder),
  };

  const indexes = storageIndexes();
  const retryUnbound = unboundClaimsRetry(indexes, queues);
  const protection = createClaimProtection(claimClient, podClient, (namespace, name) => pods.get(namespace, name));
  const claims = informers.follow(PERSISTENT_VOLUME_CLAIMS, { signal }, claimHandlers(indexes, queues));
  const volumes = informers.follow(PERSISTENT_VOLUMES, { signal }, volumeHandlers(indexes, queues, retryUnbound));
  const classes = informers.follow<StorageClass>(
    STORAGE_CLASSES,
    { signal },
    { added: retryUnbound, updated: retryUnbound },
  );
  const nodes = informers.follow<Node>(NODES, { signal });
  const pods: Informer<Pod> = informers.follow(PODS, { signal }, podHandlers(indexes, protection, queues));
  const { claimsByOwner, search } = indexes;
  const events = createEventRecorder(client, { component: 'persistentvolume-controller', ...working });
  const controller: Controller = {
    claims,
    claimsByOwner,
    volumes,
    search,
    classes,
    nodes,
    pods,
    claimClient,
    volumeClient,
    podClient,
    folders,
    events,
    protection,
  };

  await Promise.all([claims, volumes, classes, nodes, pods].map((informer) => informer.synced));
  if (classes.get(undefined, localPathClass.metadata.name) === undefined) await ensureClass(classClient);
  synced.resolve();
}

async function syncClaim(controller: Controller, key: string): Promise<void> {
  const [namespace, name] = key.split('/') as [string, string];
  const claim = controller.claims.get(namespace, name);
  if (claim === undefined) return;
  if (claim.metadata.deletionTimestamp !== undefined) await controller.protection.release(claim);
  else await reconcileClaim(controller, claim);
}

async function syncVolume(controller: Controller, name: string): Promise<void> {
  const volume = controller.volumes.get(undefined, name);
  if (volume !== undefined) await reconcileVolume(controller, volume);
}

/**
 * Removes the empty folder of a deleted claim without a volume: the engine may have died after it created the folder and before it created
 * the volume.
 */
async function syncFolder({ volumes, volumeClient, folders }: Controller, name: string): Promise<void> {
  const volume = volumes.get(undefined, name) ?? (await readNow(volumeClient, name));
  if (volume === undefined) await folders.removeUnused(name);
}

/** `key`: NAMESPACE/NAME/UID of the Pod. */
async function syncPod(controller: Controller, key: string): Promise<void> {
  const [namespace, name, uid] = key.split('/') as [string, string, string];
  const pod = controller.pods.get(namespace, name) ?? (await readNow(controller.podClient, name, namespace));
  if (pod?.metadata.uid === uid) await ensureEphemeralClaims(pod, controller);
  else await deleteOwnClaims(namespace, uid, controller);
}

async function ensureClass(classes: ResourceClient<StorageClass>): Promise<void> {
  try {
    await classes.create(localPathClass);
  } catch (error) {
    if (!isApiError(error, 'AlreadyExists')) throw error;
  }
}
