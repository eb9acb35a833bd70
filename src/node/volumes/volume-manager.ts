/**
 * Boundary: changes only the Pods' folders, <rootDirectory>/<Pod UID> on disk and one per Pod in memory, apart from hostPaths that it
 * creates and the ownership of PersistentVolumes.
 * Invariants:
 * - mount() and unmount() are idempotent, even if the engine died during an earlier call.
 * - A folder that contains a mount is not removed.
 * - All files of a configMap, secret, downwardAPI or projected volume change at the same time.
 * - If the update of a mounted volume fails, the volume keeps its files, and the update is retried. After a restart of the agent, a volume
 *   also keeps its files if their sources no longer exist.
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
   * The caller calls mount() again after a restart of the agent. Rejects with a VolumeError if a volume cannot be set up and has no files
   * to keep, and with an OutcomeUnknownError if the runtime did not answer.
   */
  mount(pod: Pod, signal: AbortSignal): Promise<void>;
  /** Called when the Pod object has changed. Starts an update if a volume contains a changed field and the last mount() succeeded. */
  update(pod: Pod): void;
  /**
   * Rewrites the volumes that contain fields of the Pod or resources of its containers. Rejects if mount() was not called before, or if a
   * volume that was never written cannot be written.
   */
  rewrite(pod: Pod, signal: AbortSignal): Promise<void>;
  /**
   * Unmounts and removes the Pod's volumes, their subpath mounts and the kept copies (see KEPT_FOLDER). Rejects if a mount cannot be
   * unmounted. Succeeds if the volumes do not exist.
   */
  unmount(podUid: string, signal: AbortSignal): Promise<void>;
  /** Like unmount(), but also deletes the rest of the Pod's folder. */
  remove(podUid: string, signal: AbortSignal): Promise<void>;
  /** Throws a VolumeError if the Pod has no volume of this name or the volume's kind is not supported. */
  hostPath(podUid: string, pod: Pod, volumeName: string): string;
  podDirectory(podUid: string): string;
  readonly objects: FollowedObjects;
  /** Stops the rotation of tokens and all updates. Volumes stay mounted. */
  close(): void;
}

export interface VolumeManagerOptions extends SetUpOptions {
  /** <data-dir>/pods. */
  rootDirectory: string;
  /** Called with the key (fileSourceKey) of a followed object that was added, updated or deleted. */
  onObject?(key: string): void;
  /** Called when the last mount() of the Pod has failed and should be repeated. */
  onRetry?(podUid: string): void;
}

export function createVolumeManager(options: VolumeManagerOptions): VolumeManager {
  const { rootDirectory, memory, images } = options;
  /** The key is a Pod's UID, or `volume/` and the name of a PersistentVolume. */
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
