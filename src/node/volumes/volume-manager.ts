/**
 * Manages the volumes of the node's Pods: they are set up before the containers are created and removed after them.
 * Boundary: a folder per Pod on disk, <rootDirectory>/<pod UID>, and one in memory. Reads objects through the client, mounts with mount(8).
 * Invariants:
 *  1. mount() and unmount() are idempotent, also after a crash in the middle.
 *  2. Nothing outside these folders is ever removed, and neither is a folder that contains a mount.
 *  3. All files of a configMap, secret, downwardAPI or projected volume change atomically.
 *  4. A token in a volume is replaced before 80% of its lifetime have passed.
 *  5. When a source of a mounted volume (a ConfigMap, a Secret, a field of the Pod) changes, the volume is rewritten; there is no
 *     polling. If that fails, the volume keeps its files, and the update is retried: after a delay, or, if the files are too large,
 *     with the next change or once other volumes of the Pod have become smaller. The same holds after a restart of the agent: a Pod
 *     keeps its files even if their sources no longer exist.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pod, Volume } from '../../api/generated/types.ts';
import type { Client } from '../../client/client.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import type { Log, Timer, Timers } from '../../platform/platform.ts';
import { createSerialByKey } from '../../platform/serial-by-key.ts';
import { settleAtMost } from '../../platform/settle-at-most.ts';
import { OutcomeUnknownError } from '../../runtime/runtime.ts';
import { claimNamesOf } from '../../scheduling/volume-claims.ts';
import { volumesByName } from '../container/by-name.ts';
import type { DownwardFacts } from '../container/downward.ts';
import { KEPT_FOLDER } from '../pod/kept-files.ts';
import type { ClaimSource } from './claim.ts';
import { followObjects } from './followed-objects.ts';
import type { VolumeImages } from './image.ts';
import { dataReader, type PayloadSource } from './payload.ts';
import type { PodMemory } from './pod-memory.ts';
import { shownObjects, showsChange, showsObjects, showsPod } from './references.ts';
import { removeParts } from './removal.ts';
import { NoRoomError, shownRoom } from './room.ts';
import { folderOf, keepVolume, type PodDirectories, setUpVolume } from './set-up.ts';
import { createFailures, VolumeError } from './volume-error.ts';

export interface VolumeManager {
  /** Sets up all volumes of the Pod. Call again after a restart of the agent. Rejects with a VolumeError. */
  mount(pod: Pod, signal: AbortSignal): Promise<void>;
  /** The Pod object has changed: updates mounted volumes that contain its fields. */
  update(pod: Pod): void;
  /** Rewrites mounted volumes that contain fields of the Pod; resolves when done. Rejects if the volumes are not mounted. */
  rewrite(pod: Pod, signal: AbortSignal): Promise<void>;
  /** Unmounts and removes the Pod's volumes. Rejects if a mount is busy. Idempotent. */
  unmount(podUid: string, signal: AbortSignal): Promise<void>;
  /** Like unmount(), but also deletes the rest of the Pod's folder. */
  remove(podUid: string, signal: AbortSignal): Promise<void>;
  /** The path of the volume on the node. */
  hostPath(podUid: string, pod: Pod, volumeName: string): string;
  podDirectory(podUid: string): string;
  /** Stops the rotation of tokens and all updates. Volumes stay mounted. */
  close(): void;
}

export interface VolumeManagerOptions {
  /** <data-dir>/pods. */
  rootDirectory: string;
  /** The tmpfs for Secrets and tokens. */
  memory: PodMemory;
  client: Client;
  timers: Timers;
  log: Log;
  nodeName: string;
  /** Allocatable of the node, for resourceFieldRef in downwardAPI volumes. */
  allocatable?: Readonly<Record<string, string>>;
  /** Absent: image volumes are not supported. */
  images?: VolumeImages;
  /** The ConfigMap or Secret with this key (fileSourceKey) was added, updated or deleted. */
  onObject?(key: string): void;
  /** The cause of a failed mount() of the Pod has changed: mount() may succeed now. */
  onRetry?(podUid: string): void;
  /** A mounted volume could not be updated, or mount() failed for this reason in addition to the one it rejects with. */
  onFailure?(pod: Pod, error: VolumeError): void;
}

/** A Pod whose volumes are mounted or are to be mounted. */
interface MountedPod {
  pod: Pod;
  /** Keys of the objects that its volumes contain. */
  shows: ReadonlySet<string>;
  failed: boolean;
  /** When to replace its first token or to retry an update that failed. */
  refreshAt: number;
  /** State that is kept between two set-ups of the volumes. */
  keeps: Pick<PayloadSource, 'tokens' | 'room'>;
}

/** How many volumes of a Pod are set up at the same time: each may start a program and use a megabyte of memory. */
const MAX_AT_ONCE = 8;
const RETRY_MILLIS = 30_000;

export function createVolumeManager(options: VolumeManagerOptions): VolumeManager {
  const { rootDirectory, memory, client, timers, log } = options;
  const mounted = new Map<string, MountedPod>();
  /** The operations on each Pod's folder, by UID, and on each PersistentVolume. */
  const operations = createSerialByKey();
  const closing = new AbortController();
  let armed: { timer: Timer; at: number } | undefined;

  const podDirectory = (uid: string): string => {
    if (!/^[A-Za-z0-9][A-Za-z0-9-]*$/.test(uid)) throw new Error(`invalid Pod UID: ${JSON.stringify(uid)}`);
    return join(rootDirectory, uid);
  };
  const directoriesOf = (uid: string): PodDirectories => ({ disk: podDirectory(uid), memory: memory.directory(uid) });

  const alone: ClaimSource['alone'] = (name, operation) => operations.run(`volume/${name}`, operation);

  function sourceFor({ pod, keeps }: MountedPod): PayloadSource {
    const { nodeName, allocatable = {} } = options;
    const facts: DownwardFacts = { ...{ nodeName, allocatable }, hostIps: [], podIps: [] };
    return { client, pod, facts, ...keeps, read: dataReader(client, pod), now: () => timers.now() };
  }

  /** Sets up the Pod's volumes for which `kind` returns true. Rejects with the VolumeError of one that failed; reports the others. */
  async function setUpSome(entry: MountedPod, kind: (volume: Volume) => boolean, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const failures = createFailures((error) => options.onFailure?.(entry.pod, error), timers);
    const source = sourceFor(entry);
    const volumes = (entry.pod.spec?.volumes ?? []).filter(kind);
    const results = await settleAtMost(MAX_AT_ONCE, volumes, async (volume) => {
      signal.throwIfAborted();
      const folder = (): string => folderOf(directoriesOf(entry.pod.metadata.uid ?? ''), volume);
      const warn = (error: VolumeError): void => options.onFailure?.(entry.pod, error);
      try {
        const place = { volume, folder: folder(), images: options.images, memory, warn, alone };
        return await setUpVolume(source, place, signal);
      } catch (cause) {
        if (signal.aborted || cause instanceof OutcomeUnknownError) throw cause;
        const error = cause instanceof VolumeError ? cause : new VolumeError(volume.name, (cause as Error).message);
        if (!showsObjects(volume) || !(await keepVolume(source, volume, folder()))) throw failures.add(error);
        const retryAt = reportStale(entry, error);
        return cause instanceof NoRoomError ? () => (cause.fits() ? retryAt : undefined) : retryAt;
      }
    });
    const failure = failures.end(results.flatMap((each) => (each.status === 'rejected' ? [each.reason] : [])));
    if (failure !== undefined) throw failure;
    // A volume that exceeded the limit may fit now that the others were updated.
    const times = results.map((result) => {
      const time = result.status === 'fulfilled' ? result.value : undefined;
      return typeof time === 'function' ? time() : time;
    });
    refreshAt(entry, Math.min(...times.filter((time) => time !== undefined)));
  }

  /** Reports that a volume keeps its old files. Returns when to retry the update. */
  function reportStale({ pod }: MountedPod, error: Error): number {
    log.warn('cannot update a volume', { podUid: pod.metadata.uid, error: error.message });
    if (error instanceof VolumeError) options.onFailure?.(pod, error);
    return timers.now() + RETRY_MILLIS;
  }

  function refreshAt(entry: MountedPod, at: number): void {
    entry.refreshAt = at;
    arm();
  }

  async function setUpAll(pod: Pod, signal: AbortSignal): Promise<void> {
    const uid = pod.metadata.uid ?? '';
    signal.throwIfAborted();
    await mkdir(podDirectory(uid), { recursive: true, mode: 0o750 });
    signal.throwIfAborted();
    // Register the Pod before its objects are read, so that later changes of them are not missed.
    const entry: MountedPod = {
      pod,
      shows: shownObjects(pod),
      failed: false,
      refreshAt: Number.POSITIVE_INFINITY,
      keeps: mounted.get(uid)?.keeps ?? { tokens: new Map(), room: shownRoom() },
    };
    mounted.set(uid, entry);
    try {
      await setUpSome(entry, () => true, signal);
    } catch (error) {
      entry.failed = true;
      throw error;
    }
  }

  /** Limits how many Pods are updated at the same time, and combines changes that arrive together. */
  const refreshes = createWorkQueue({
    name: 'volumes',
    async process(uid) {
      const underWay = operations.pending(uid);
      if (underWay === undefined) return operations.run(uid, () => rewriteObjects(uid));
      // The operation under way may be a long pull, so process other Pods first.
      void underWay.then(() => refreshes.add(uid));
    },
    ...{ log, timers, signal: closing.signal },
  });

  /** Rewrites the Pod's volumes whose content has changed. */
  async function rewriteObjects(uid: string): Promise<void> {
    const entry = mounted.get(uid);
    if (entry === undefined) return;
    if (entry.failed) return options.onRetry?.(uid);
    await setUpSome(entry, showsObjects, closing.signal).catch((error: Error) => {
      if (!closing.signal.aborted) refreshAt(entry, reportStale(entry, error));
    });
  }

  function arm(): void {
    const at = Math.min(...[...mounted.values()].map((entry) => entry.refreshAt));
    if (armed?.at === at || closing.signal.aborted) return;
    armed?.timer.cancel();
    armed = at === Number.POSITIVE_INFINITY ? undefined : { at, timer: timers.at(at, refreshDue) };
  }

  function refreshDue(): void {
    armed = undefined;
    for (const [uid, entry] of mounted) {
      if (entry.refreshAt > timers.now()) continue;
      entry.refreshAt = timers.now() + RETRY_MILLIS;
      refreshes.add(uid);
    }
    arm();
  }

  async function removeFiles(podUid: string, parts: readonly string[], signal: AbortSignal): Promise<void> {
    await removeParts({ ...directoriesOf(podUid), podUid, images: options.images }, parts, signal);
    // Other Pods may have waited for the Pod's claims.
    for (const [other, { pod, failed }] of mounted)
      if (failed && claimNamesOf(pod).length > 0) options.onRetry?.(other);
  }

  const forget = (uid: string): void => {
    mounted.delete(uid);
    arm();
  };
  const removal =
    (parts: readonly string[]) =>
    (uid: string, signal: AbortSignal): Promise<void> => {
      forget(uid);
      return operations.run(uid, () => {
        // A mount that was under way may have registered the Pod again.
        forget(uid);
        return removeFiles(uid, parts, signal);
      });
    };
  followObjects(client, { log, timers, signal: closing.signal }, (key) => {
    for (const [uid, entry] of mounted) if (entry.shows.has(key)) refreshes.add(uid);
    options.onObject?.(key);
  });
  return {
    podDirectory,
    mount: (pod, signal) => operations.run(pod.metadata.uid ?? '', () => setUpAll(pod, signal)),
    update(pod) {
      const uid = pod.metadata.uid ?? '';
      const entry = mounted.get(uid);
      if (entry === undefined) return;
      const { pod: before } = entry;
      entry.pod = pod;
      if (!entry.failed && showsChange(before, pod, sourceFor(entry).facts)) refreshes.add(uid);
    },
    rewrite: (pod, signal) =>
      operations.run(pod.metadata.uid ?? '', async () => {
        const entry = mounted.get(pod.metadata.uid ?? '');
        if (entry === undefined) throw new Error('the volumes of the Pod are not mounted');
        entry.pod = pod;
        const { refreshAt: before } = entry;
        await setUpSome(entry, showsPod, signal);
        // setUpSome() considered only some volumes; the others may contain tokens as well.
        refreshAt(entry, Math.min(before, entry.refreshAt));
      }),
    unmount: removal(['volumes', 'volume-subpaths', KEPT_FOLDER]),
    remove: removal(['']),
    hostPath(podUid, pod, volumeName) {
      const volume = volumesByName(pod).get(volumeName);
      if (volume === undefined)
        throw new VolumeError(volumeName, `volume ${JSON.stringify(volumeName)} does not exist`);
      return volume.hostPath?.path ?? folderOf(directoriesOf(podUid), volume);
    },
    close() {
      closing.abort();
      armed?.timer.cancel();
    },
  };
}
