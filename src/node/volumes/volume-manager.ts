/**
 * Manages the volumes of the node's Pods. Volumes are set up before the containers are created and removed after the containers
 * have ended.
 * Boundary: changes only the Pods' folders, <rootDirectory>/<Pod UID> on disk and one per Pod in memory, apart from hostPaths that
 * it creates and the ownership of PersistentVolumes. Reads objects and requests tokens through the client, and mounts with
 * mount(8). mounted-pods.ts updates mounted volumes.
 * Invariants:
 *  1. mount() and unmount() are idempotent, even if the engine died during an earlier call.
 *  2. Nothing outside the Pods' folders is ever removed, and a folder that contains a mount is not removed.
 *  3. All files of a configMap, secret, downwardAPI or projected volume change at the same time.
 *  4. A token in a mounted volume is due for replacement before 80% of its lifetime have passed.
 *  5. When a source of a mounted volume (a ConfigMap, a Secret, a field of the Pod) changes, the volume is rewritten; there is no
 *     polling. If the update fails, the volume keeps its files, and the update is retried after a delay. An update whose files are
 *     too large is retried at the next change, or after a delay if the files fit because other volumes of the Pod have become
 *     smaller. After a restart of the agent, a volume also keeps its files if their sources no longer exist.
 */

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pod } from '../../api/generated/types.ts';
import { uidOf } from '../../machinery/meta.ts';
import { createSerialByKey } from '../../platform/serial-by-key.ts';
import { volumesByName } from '../container/by-name.ts';
import { KEPT_FOLDER } from '../pod/kept-files.ts';
import { type FollowedObjects, followObjects } from './followed-objects.ts';
import { createMountedPods } from './mounted-pods.ts';
import type { SetUpOptions } from './pod-set-up.ts';
import { removeParts } from './removal.ts';
import { folderOf, type PodDirectories } from './set-up.ts';
import { VolumeError } from './volume-error.ts';

export interface VolumeManager {
  /**
   * Sets up all volumes of the Pod. The caller calls mount() again after a restart of the agent. Rejects with a VolumeError if a
   * volume cannot be set up, except if the volume keeps its files (invariant 5), and with an OutcomeUnknownError if the runtime did
   * not answer.
   */
  mount(pod: Pod, signal: AbortSignal): Promise<void>;
  /**
   * Called when the Pod object has changed. If one of the Pod's volumes contains a changed field and the last mount() succeeded,
   * starts an update of the Pod's volumes.
   */
  update(pod: Pod): void;
  /**
   * Rewrites the volumes that contain fields of the Pod or resources of its containers, and resolves when this is done. Rejects if
   * mount() was not called before, or if a volume that was never written cannot be written.
   */
  rewrite(pod: Pod, signal: AbortSignal): Promise<void>;
  /**
   * Unmounts and removes the Pod's volumes, their subpath mounts and the kept copies (see KEPT_FOLDER). Rejects if a mount cannot be
   * unmounted. Succeeds if the volumes do not exist.
   */
  unmount(podUid: string, signal: AbortSignal): Promise<void>;
  /** Like unmount(), but also deletes the rest of the Pod's folder. */
  remove(podUid: string, signal: AbortSignal): Promise<void>;
  /**
   * Returns the path of the volume on the node. Throws a VolumeError if the Pod has no volume of this name or the volume's kind is
   * not supported.
   */
  hostPath(podUid: string, pod: Pod, volumeName: string): string;
  podDirectory(podUid: string): string;
  /** The ConfigMaps and Secrets that the volumes and other parts of the agent follow. */
  readonly objects: FollowedObjects;
  /** Stops the rotation of tokens and all updates. Volumes stay mounted. */
  close(): void;
}

export interface VolumeManagerOptions extends SetUpOptions {
  /** The folder that contains the Pods' folders on disk: <data-dir>/pods. */
  rootDirectory: string;
  /** Called when the followed ConfigMap or Secret with this key (fileSourceKey) was added, updated or deleted. */
  onObject?(key: string): void;
  /**
   * Called when the last mount() of the Pod has failed and should be repeated, because an update of its volumes is due, or because
   * the Pod has claims and volumes of another Pod were removed.
   */
  onRetry?(podUid: string): void;
}

export function createVolumeManager(options: VolumeManagerOptions): VolumeManager {
  const { rootDirectory, memory, images } = options;
  /** Runs one operation at a time per key: a Pod's UID, or `volume/` and the name of a PersistentVolume. */
  const operations = createSerialByKey();
  const closing = new AbortController();

  const podDirectory = (uid: string): string => {
    if (!/^[A-Za-z0-9][A-Za-z0-9-]*$/.test(uid)) throw new Error(`invalid Pod UID: ${JSON.stringify(uid)}`);
    return join(rootDirectory, uid);
  };
  const directoriesOf = (uid: string): PodDirectories => ({ disk: podDirectory(uid), memory: memory.directory(uid) });

  const objects = followObjects({ ...options, signal: closing.signal }, (key) => {
    pods.objectChanged(key);
    options.onObject?.(key);
  });
  const pods = createMountedPods({
    ...options,
    objects,
    directoriesOf,
    operations,
    alone: (name, operation) => operations.run(`volume/${name}`, operation),
    signal: closing.signal,
  });

  async function mount(pod: Pod, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await mkdir(podDirectory(uidOf(pod)), { recursive: true, mode: 0o750 });
    signal.throwIfAborted();
    await pods.mount(pod, signal);
  }

  /** Returns a function that unmounts a Pod's volumes and removes `parts` of the Pod's folder; see removeParts(). */
  const removal =
    (parts: readonly string[]) =>
    (podUid: string, signal: AbortSignal): Promise<void> => {
      pods.forget(podUid);
      return operations.run(podUid, async () => {
        // A mount that was under way may have registered the Pod again.
        pods.forget(podUid);
        await removeParts({ ...directoriesOf(podUid), podUid, images }, parts, signal);
        // Other Pods may wait for PersistentVolumes that this Pod used.
        for (const other of pods.waitingForClaims()) options.onRetry?.(other);
      });
    };

  return {
    objects,
    podDirectory,
    mount: (pod, signal) => operations.run(uidOf(pod), () => mount(pod, signal)),
    update: pods.update,
    rewrite: (pod, signal) => operations.run(uidOf(pod), () => pods.rewrite(pod, signal)),
    unmount: removal(['volumes', 'volume-subpaths', KEPT_FOLDER]),
    remove: removal(['']),
    hostPath(podUid, pod, volumeName) {
      const volume = volumesByName(pod).get(volumeName);
      if (volume === undefined)
        throw new VolumeError(volumeName, `volume ${JSON.stringify(volumeName)} does not exist`);
      return volume.hostPath?.path ?? folderOf(directoriesOf(podUid), volume);
    },
    close: () => closing.abort(),
  };
}
