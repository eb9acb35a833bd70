/** Determines which keys to queue when a claim, a volume, a class or a Pod changes, and keeps the indexes for this purpose. */
import type { PersistentVolume, PersistentVolumeClaim, Pod } from '../../api/generated/types.ts';
import type { InformerHandlers } from '../../client/local-copy.ts';
import type { WorkQueue } from '../../client/work-queue.ts';
import { uidOf } from '../../machinery/meta.ts';
import { claimNameOf, claimNamesOf } from '../../scheduling/volume-claims.ts';
import { volumeIndex } from '../../scheduling/volume-search.ts';
import { type GroupedKeys, groupedKeys } from './grouped-keys.ts';
import { volumeNameFor } from './local-path.ts';
import type { ClaimProtection } from './protection.ts';
import { claimKey, controllersOf } from './storage.ts';

export interface Queues {
  /** NAMESPACE/NAME of claims. */
  claims: WorkQueue;
  /** Names of volumes. */
  volumes: WorkQueue;
  /** NAMESPACE/NAME/UID of Pods that need claims for ephemeral volumes, or that were deleted but may still have claims. */
  ephemeralClaims: WorkQueue;
  /** Names of volumes that were to be provisioned for claims that are deleted now. The folder may exist although the volume does not. */
  unusedFolders: WorkQueue;
}

export interface StorageIndexes {
  search: ReturnType<typeof volumeIndex>;
  /** Keys of claims, by the name of their volume, or '' if they name none. */
  claimsByVolume: GroupedKeys<PersistentVolumeClaim>;
  /** Keys of claims, by the UID of their controller. */
  claimsByOwner: GroupedKeys<PersistentVolumeClaim>;
  /** Names of volumes, by the UID of the claim for which they are reserved, or '' if there is none. */
  volumesByClaim: GroupedKeys<PersistentVolume>;
  /** NAMESPACE/NAME/UID of Pods, by the keys of the claims of their ephemeral volumes. */
  podsByEphemeralClaim: GroupedKeys<Pod>;
}

const podKey = ({ metadata }: Pod): string => `${metadata.namespace}/${metadata.name}/${metadata.uid}`;

const ephemeralClaimKeys = (pod: Pod): string[] =>
  (pod.spec?.volumes ?? [])
    .filter(({ ephemeral }) => ephemeral !== undefined)
    .map((volume) => claimKey({ ...pod.metadata, name: claimNameOf(pod, volume) }));

export function storageIndexes(): StorageIndexes {
  return {
    search: volumeIndex(),
    claimsByVolume: groupedKeys(
      ({ metadata }) => claimKey(metadata),
      ({ spec }) => [spec?.volumeName ?? ''],
    ),
    claimsByOwner: groupedKeys(
      ({ metadata }) => claimKey(metadata),
      ({ metadata }) => controllersOf(metadata).map(({ uid }) => uid),
    ),
    volumesByClaim: groupedKeys(
      ({ metadata }) => metadata.name,
      ({ spec }) => [spec?.claimRef?.uid ?? ''],
    ),
    podsByEphemeralClaim: groupedKeys(podKey, ephemeralClaimKeys),
  };
}

export function claimHandlers(
  { claimsByVolume, claimsByOwner, volumesByClaim, podsByEphemeralClaim }: StorageIndexes,
  queues: Queues,
): InformerHandlers<PersistentVolumeClaim> {
  const put = (claim: PersistentVolumeClaim): void => {
    claimsByVolume.put(claim);
    claimsByOwner.put(claim);
  };
  const remove = (claim: PersistentVolumeClaim): void => {
    claimsByVolume.remove(claim);
    claimsByOwner.remove(claim);
  };
  const changed = ({ metadata, spec }: PersistentVolumeClaim): void => {
    queues.claims.add(claimKey(metadata));
    if (spec?.volumeName) queues.volumes.add(spec.volumeName);
  };
  return {
    added(claim) {
      put(claim);
      changed(claim);
      // The Pod that owns the claim may have been deleted while no engine was running.
      const { namespace } = claim.metadata;
      for (const { kind, name, uid } of controllersOf(claim.metadata)) {
        if (kind === 'Pod') queues.ephemeralClaims.add(`${namespace}/${name}/${uid}`);
      }
    },
    updated(claim, old) {
      remove(old);
      put(claim);
      changed(claim);
    },
    deleted(claim) {
      remove(claim);
      changed(claim);
      if (!claim.spec?.volumeName) queues.unusedFolders.add(volumeNameFor(claim));
      // A volume may be reserved for the claim although the claim does not name it yet.
      for (const name of volumesByClaim.keysOf(uidOf(claim))) queues.volumes.add(name);
      for (const key of podsByEphemeralClaim.keysOf(claimKey(claim.metadata))) queues.ephemeralClaims.add(key);
    },
  };
}

/** Returns a function that queues all claims that name no volume. Several calls in one turn of the event loop queue them once. */
export function unboundClaimsRetry({ claimsByVolume }: StorageIndexes, { claims }: Queues): () => void {
  let isScheduled = false;
  return () => {
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(() => {
      isScheduled = false;
      for (const key of claimsByVolume.keysOf('')) claims.add(key);
    });
  };
}

export function volumeHandlers(
  { search, volumesByClaim, claimsByVolume }: StorageIndexes,
  queues: Queues,
  retryUnboundClaims: () => void,
): InformerHandlers<PersistentVolume> {
  const put = (volume: PersistentVolume): void => {
    search.put(volume);
    volumesByClaim.put(volume);
  };
  const remove = (volume: PersistentVolume): void => {
    search.remove(volume);
    volumesByClaim.remove(volume);
  };
  const changed = ({ metadata, spec }: PersistentVolume): void => {
    queues.volumes.add(metadata.name);
    if (spec?.claimRef !== undefined) queues.claims.add(claimKey(spec.claimRef));
    else {
      retryUnboundClaims();
      for (const key of claimsByVolume.keysOf(metadata.name)) queues.claims.add(key);
    }
  };
  return {
    added(volume) {
      put(volume);
      changed(volume);
    },
    updated(volume, old) {
      remove(old);
      put(volume);
      changed(volume);
    },
    deleted(volume) {
      remove(volume);
      const { spec } = volume;
      if (spec?.claimRef !== undefined) queues.claims.add(claimKey(spec.claimRef));
    },
  };
}

export function podHandlers(
  { podsByEphemeralClaim }: StorageIndexes,
  protection: ClaimProtection,
  queues: Queues,
): InformerHandlers<Pod> {
  const queueEphemeral = (pod: Pod): void => {
    if (ephemeralClaimKeys(pod).length > 0) queues.ephemeralClaims.add(podKey(pod));
  };
  return {
    added(pod) {
      protection.put(pod);
      podsByEphemeralClaim.put(pod);
      queueEphemeral(pod);
    },
    updated(pod, old) {
      // The volumes of a Pod are immutable. Only its binding to a node matters here.
      if (pod.spec?.nodeName === old.spec?.nodeName) return;
      protection.remove(old);
      protection.put(pod);
    },
    deleted(pod) {
      protection.remove(pod);
      podsByEphemeralClaim.remove(pod);
      queueEphemeral(pod);
      const { namespace } = pod.metadata;
      for (const name of claimNamesOf(pod)) queues.claims.add(claimKey({ namespace, name }));
    },
  };
}
