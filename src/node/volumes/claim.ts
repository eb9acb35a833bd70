/**
 * Sets up volumes of PersistentVolumeClaims. The folder or file of a local PersistentVolume is bind-mounted in the Pod's own folder. For a
 * hostPath PersistentVolume, a link to the path is created instead, so that mounts below the path are never unmounted.
 * Source: the kubelet's desired state and operation generator of v1.33 (checks and error texts), pkg/volume/local and hostpath.
 */

import type { Stats } from 'node:fs';
import { lstat, mkdir, open, readdir, stat, symlink } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod, Volume } from '../../api/generated/types.ts';
import { NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from '../../api/resources.ts';
import type { Client } from '../../client/client.ts';
import { claimNameOf, isOwnedBy } from '../../scheduling/volume-claims.ts';
import { isReachable } from '../../scheduling/volume-search.ts';
import { setUpHostPath } from './host-path.ts';
import { bindMount, isMountPoint, remountReadOnly } from './mounts.ts';
import { setOwnership } from './ownership.ts';
import { VolumeError } from './volume-error.ts';

export interface ClaimSource {
  client: Client;
  pod: Pod;
  nodeName: string;
  warn(error: VolumeError): void;
  /** Runs the operation when all earlier operations on this PersistentVolume have ended. */
  alone<T>(persistentVolume: string, operation: () => Promise<T>): Promise<T>;
}

/**
 * Keeps a volume that is mounted or linked already. Rejects if the claim or its PersistentVolume cannot be used by this Pod or on this
 * node.
 */
export async function setUpClaim(
  source: ClaimSource,
  volume: Volume,
  folder: string,
  signal: AbortSignal,
): Promise<void> {
  const readOnly = volume.persistentVolumeClaim?.readOnly === true;
  // A volume that is already mounted stays mounted, even if the claim has changed since.
  if (await isMountPoint(folder)) {
    // An engine may have died after the bind mount and before it made the mount read-only.
    if (readOnly) await remountReadOnly(folder, signal);
    return;
  }
  if (await isLink(folder)) return;
  const { client, pod } = source;
  const name = claimNameOf(pod, volume) ?? '';
  const persistent = await boundVolume(client, pod, volume, name).catch((error: Error) => {
    throw new Error(`error processing PVC ${pod.metadata.namespace}/${name}: ${error.message}`);
  });
  await checkNode(source, volume, persistent);
  await source.alone(persistent.metadata.name, async () => {
    signal.throwIfAborted();
    await show(source, persistent, { folder, readOnly }, signal);
  });
}

const isLink = (path: string): Promise<boolean> =>
  lstat(path).then(
    (found) => found.isSymbolicLink(),
    (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
      return false;
    },
  );

/** The scheduler does not check the node affinity of the PersistentVolume for a Pod with a preset spec.nodeName. */
async function checkNode({ client, nodeName }: ClaimSource, volume: Volume, persistent: PersistentVolume) {
  if (persistent.spec?.nodeAffinity?.required === undefined) return;
  const node = await client.resource<Node>(NODES).get(nodeName);
  if (isReachable(persistent, node)) return;
  const step = 'MountVolume.NodeAffinity check';
  throw new VolumeError(volume.name, 'no matching NodeSelectorTerms', 'FailedMount', undefined, step);
}

async function show(
  { pod, warn }: ClaimSource,
  { metadata: { name }, spec }: PersistentVolume,
  { folder, readOnly }: { folder: string; readOnly: boolean },
  signal: AbortSignal,
): Promise<void> {
  const { hostPath, local, accessModes } = spec ?? {};
  const path = local?.path ?? hostPath?.path;
  if (path === undefined) throw new Error(`no volume plugin matched: ${name} is neither a local nor a hostPath volume`);
  if (hostPath !== undefined) {
    await setUpHostPath(hostPath);
    // Without a type, setUpHostPath() does not check the path. Create a missing path, as the runtime does for a hostPath volume.
    if (!(await exists(path))) await mkdir(path, { recursive: true, mode: 0o755 });
  }
  const found = await stat(path).catch(() => {
    throw new Error(`path ${JSON.stringify(path)} does not exist`);
  });
  const single = accessModes?.length === 1 && accessModes[0] === 'ReadWriteOncePod';
  const security = pod.spec?.securityContext ?? {};
  const { fsGroup } = security;
  const shared = (single || fsGroup !== undefined) && (await isShownElsewhere(found, folder));
  if (single && shared)
    throw new Error('volume uses the ReadWriteOncePod access mode and is already in use by another pod');
  await mkdir(dirname(folder), { recursive: true, mode: 0o750 });
  if (local === undefined) return symlink(path, folder);

  if (found.isDirectory()) await mkdir(folder, { recursive: true, mode: 0o750 });
  else await (await open(folder, 'a', 0o640)).close();
  // If another Pod has the volume, the group of the files must not change under that Pod.
  if (!shared && !readOnly) await setOwnership(path, security, signal);
  else if (shared && found.gid !== fsGroup) {
    const message = `The requested fsGroup is ${fsGroup}, but the volume ${name} has GID ${found.gid}. The volume may not be shareable.`;
    warn(new VolumeError(name, message, 'AlreadyMountedVolume'));
  }
  await bindMount(path, folder, signal);
  if (readOnly) await remountReadOnly(folder, signal);
}

const exists = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );

/**
 * Whether another Pod has mounted or linked `found`. `folder` is this Pod's place for the volume: <Pods'
 * folder>/<UID>/volumes/<plugin>/<name>. Compares inodes in the folders of all Pods, because mounts outlive the agent and the agent keeps
 * no list of them.
 */
async function isShownElsewhere(found: Stats, folder: string): Promise<boolean> {
  const plugin = dirname(folder);
  const own = dirname(dirname(plugin));
  for (const uid of await readdir(dirname(own))) {
    const others = join(dirname(own), uid, relative(own, plugin));
    if (others === plugin) continue;
    for (const name of await readdir(others).catch(() => [])) {
      const other = await stat(join(others, name)).catch(() => undefined);
      if (other?.ino === found.ino && other.dev === found.dev) return true;
    }
  }
  return false;
}

async function boundVolume(client: Client, pod: Pod, volume: Volume, name: string): Promise<PersistentVolume> {
  const claim = await client
    .resource<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIMS)
    .get(name, pod.metadata.namespace)
    .catch((error: Error) => {
      throw new Error(`failed to fetch PVC from API server: ${error.message}`);
    });
  if (volume.ephemeral !== undefined && !isOwnedBy(claim, pod)) {
    throw new Error(`PVC ${claim.metadata.namespace}/${name} was not created for the Pod (pod is not owner)`);
  }
  // A claim with a deletionTimestamp may be removed at any moment, so a Pod must not start to use the claim.
  if (claim.metadata.deletionTimestamp !== undefined) throw new Error('PVC is being deleted');
  const volumeName = claim.spec?.volumeName ?? '';
  if (claim.status?.phase !== 'Bound' || volumeName === '') throw new Error('PVC is not bound');
  const persistent = await client
    .resource<PersistentVolume>(PERSISTENT_VOLUMES)
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
