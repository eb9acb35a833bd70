/**
 * Volumes that a claim is bound to: the folder of the PersistentVolume, mounted in the Pod's own folder.
 * Source: the kubelet's desired state of v1.33 (checks and error texts), pkg/volume/local and hostpath.
 */
import { mkdir, open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { PersistentVolume, PersistentVolumeClaim, Pod, Volume } from '../../api/generated/types.ts';
import type { Client } from '../../client/client.ts';
import { claimNameOf, isOwnedBy } from '../../scheduling/volume-claims.ts';
import { bindMount, isMountPoint, remountReadOnly } from '../mounts.ts';
import { setUpHostPath } from './host-path.ts';
import { setOwnership } from './ownership.ts';

/** Mounts it at `folder`, unless it is there. */
export async function setUpClaim(
  client: Client,
  pod: Pod,
  volume: Volume,
  folder: string,
  signal: AbortSignal,
): Promise<void> {
  const readOnly = volume.persistentVolumeClaim?.readOnly === true;
  // Whatever has become of the claim meanwhile.
  if (await isMountPoint(folder)) {
    // An engine may have died between the bind mount and making it read-only.
    if (readOnly) await remountReadOnly(folder, signal);
    return;
  }
  const name = claimNameOf(pod, volume) ?? '';
  const persistent = await boundVolume(client, pod, volume, name).catch((error: Error) => {
    throw new Error(`error processing PVC ${pod.metadata.namespace}/${name}: ${error.message}`);
  });
  const { hostPath, local } = persistent.spec ?? {};
  const path = local?.path ?? hostPath?.path;
  if (path === undefined) {
    throw new Error(`no volume plugin matched: ${persistent.metadata.name} is neither a local nor a hostPath volume`);
  }
  if (hostPath !== undefined) await setUpHostPath(hostPath);
  const found = await stat(path).catch(() => {
    throw new Error(`path ${JSON.stringify(path)} does not exist`);
  });
  if (found.isDirectory()) await mkdir(folder, { recursive: true, mode: 0o750 });
  else {
    await mkdir(dirname(folder), { recursive: true, mode: 0o750 });
    await (await open(folder, 'a', 0o640)).close();
  }
  // As upstream, a path of the node that is no volume of its own keeps its owners.
  if (local !== undefined && !readOnly) await setOwnership(path, pod.spec?.securityContext ?? {}, signal);
  await bindMount(path, folder, signal);
  if (readOnly) await remountReadOnly(folder, signal);
}

async function boundVolume(client: Client, pod: Pod, volume: Volume, name: string): Promise<PersistentVolume> {
  const claim = await client
    .resource<PersistentVolumeClaim>({ group: '', version: 'v1', resource: 'persistentvolumeclaims' })
    .get(name, pod.metadata.namespace)
    .catch((error: Error) => {
      throw new Error(`failed to fetch PVC from API server: ${error.message}`);
    });
  if (volume.ephemeral !== undefined && !isOwnedBy(claim, pod)) {
    throw new Error(`PVC ${claim.metadata.namespace}/${name} was not created for the Pod (pod is not owner)`);
  }
  // Who names the node asks no scheduler; the claim would go under a Pod that began to use it now.
  if (claim.metadata.deletionTimestamp !== undefined) throw new Error('PVC is being deleted');
  const volumeName = claim.spec?.volumeName ?? '';
  if (claim.status?.phase !== 'Bound' || volumeName === '') throw new Error('PVC is not bound');
  const persistent = await client
    .resource<PersistentVolume>({ group: '', version: 'v1', resource: 'persistentvolumes' })
    .get(volumeName)
    .catch((error: Error) => {
      throw new Error(`failed to fetch PV ${volumeName} from API server: ${error.message}`);
    });
  const reference = persistent.spec?.claimRef?.uid;
  if (reference === undefined) throw new Error(`found PV object ${volumeName} but it has a nil pvc.Spec.ClaimRef`);
  if (reference !== claim.metadata.uid) {
    throw new Error(
      `found PV object ${volumeName} but its pv.Spec.ClaimRef.UID ${reference} does not point to claim.UID ${claim.metadata.uid}`,
    );
  }
  if (claim.spec?.volumeMode === 'Block') throw new Error('block volumes are not supported');
  return persistent;
}
