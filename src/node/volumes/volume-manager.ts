/**
 * The volumes of the node's Pods: made before the containers, gone after them.
 * Boundary: one folder a Pod on disk, <rootDirectory>/<pod UID>, and one in memory; reads objects through the client, mounts with mount(8).
 * Invariants:
 *  1. mount() and unmount() may be repeated at any time, also after a crash in the middle.
 *  2. Nothing outside these folders is ever removed; a folder with a live mount in it is not removed.
 *  3. Files of configMap, secret, downwardAPI and projected volumes change all at once.
 *  4. A token in a volume is replaced before 80% of its life have passed.
 *  5. A change of what a mounted volume shows (a ConfigMap, a Secret, a field of the Pod) is written when it
 *     is heard of; nothing is polled. What cannot be written leaves the volume as it was, and is tried again: what is too large
 *     with the next change, or once other volumes of the Pod have made room. So it is when an agent begins anew: a Pod keeps
 *     the files that it has, also when what they show is gone.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pod, Volume } from '../../api/generated/types.ts';
import type { Client } from '../../client/client.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import type { Log, Timer, Timers } from '../../platform/platform.ts';
import { settleAtMost } from '../../platform/settle-at-most.ts';
import { OutcomeUnknownError } from '../../runtime/runtime.ts';
import { claimNamesOf } from '../../scheduling/volume-claims.ts';
import { volumesByName } from '../container/by-name.ts';
import type { DownwardFacts } from '../container/downward.ts';
import { KEPT_FOLDER } from '../pod/kept-references.ts';
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
  /** Makes all volumes of the Pod; call it again after a restart. Rejects with a VolumeError. */
  mount(pod: Pod, signal: AbortSignal): Promise<void>;
  /** The object changed: mounted volumes that show its fields follow. */
  update(pod: Pod): void;
  /** Writes what mounted volumes show of the Pod's fields, now. Rejects where they are not mounted. */
  rewrite(pod: Pod, signal: AbortSignal): Promise<void>;
  /** Unmounts and removes the Pod's volumes. Rejects where a mount is busy; safe to repeat. */
  unmount(podUid: string, signal: AbortSignal): Promise<void>;
  /** unmount(), and the rest of the Pod's folder goes. */
  remove(podUid: string, signal: AbortSignal): Promise<void>;
  /** Where the volume is on the node. */
  hostPath(podUid: string, pod: Pod, volumeName: string): string;
  podDirectory(podUid: string): string;
  /** Ends the rotation of tokens and the updates; volumes stay. */
  close(): void;
}

export interface VolumeManagerOptions {
  /** <data-dir>/pods */
  rootDirectory: string;
  /** Where Secrets and tokens are. */
  memory: PodMemory;
  client: Client;
  timers: Timers;
  log: Log;
  nodeName: string;
  /** Allocatable of the node, for resourceFieldRef in downwardAPI volumes. */
  allocatable?: Readonly<Record<string, string>>;
  /** Absent: no image can be a volume. */
  images?: VolumeImages;
  /** The ConfigMap or Secret of this key (fileSourceKey) came, changed or is gone. */
  onObject?(key: string): void;
  /** What kept the Pod's volumes from being mounted has changed: mount() may succeed now. */
  onRetry?(podUid: string): void;
  /** A mounted volume could not follow a change; or beside the failure that mount() rejects with there was this one. */
  onFailure?(pod: Pod, error: VolumeError): void;
}

/** A Pod whose volumes are mounted, or shall be. */
interface MountedPod {
  pod: Pod;
  /** Keys of what its volumes show. */
  shows: ReadonlySet<string>;
  failed: boolean;
  /** When its earliest token wants to be replaced, or a change that could not be written be tried again. */
  refreshAt: number;
  /** What outlasts one setting up of the volumes. */
  keeps: Pick<PayloadSource, 'tokens' | 'room'>;
}

/** Volumes of a Pod that are set up at the same time: each may start a program and hold a megabyte. */
const MAX_AT_ONCE = 8;
const RETRY_MILLIS = 30_000;

export function createVolumeManager(options: VolumeManagerOptions): VolumeManager {
  const { rootDirectory, memory, client, timers, log } = options;
  const mounted = new Map<string, MountedPod>();
  /** The last operation on each Pod's folder, and on each PersistentVolume: they run one after another. */
  const tails = new Map<string, Promise<unknown>>();
  const closing = new AbortController();
  let armed: { timer: Timer; at: number } | undefined;

  const podDirectory = (uid: string): string => {
    if (!/^[A-Za-z0-9][A-Za-z0-9-]*$/.test(uid)) throw new Error(`not a Pod UID: ${JSON.stringify(uid)}`);
    return join(rootDirectory, uid);
  };
  const directoriesOf = (uid: string): PodDirectories => ({ disk: podDirectory(uid), memory: memory.directory(uid) });

  function serially<T>(uid: string, operation: () => Promise<T>): Promise<T> {
    const result = (tails.get(uid) ?? Promise.resolve()).then(operation, operation);
    const tail = result.catch(() => undefined);
    tails.set(uid, tail);
    void tail.then(() => {
      if (tails.get(uid) === tail) tails.delete(uid);
    });
    return result;
  }

  const alone: ClaimSource['alone'] = (name, operation) => serially(`volume/${name}`, operation);

  function sourceFor({ pod, keeps }: MountedPod): PayloadSource {
    const { nodeName, allocatable = {} } = options;
    const facts: DownwardFacts = { ...{ nodeName, allocatable }, hostIps: [], podIps: [] };
    return { client, pod, facts, ...keeps, read: dataReader(client, pod), now: () => timers.now() };
  }

  /** Sets up the Pod's volumes of the kind. Rejects with the VolumeError of the first that cannot be had. */
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
        const retryAt = stays(entry, error);
        return cause instanceof NoRoomError ? () => (cause.fits() ? retryAt : undefined) : retryAt;
      }
    });
    const failure = failures.end(results.flatMap((each) => (each.status === 'rejected' ? [each.reason] : [])));
    if (failure !== undefined) throw failure;
    // One that had no room may have some now that the others follow.
    const times = results.map((result) => {
      const time = result.status === 'fulfilled' ? result.value : undefined;
      return typeof time === 'function' ? time() : time;
    });
    refreshAt(entry, Math.min(...times.filter((time) => time !== undefined)));
  }

  /** The volume goes on showing what it does. Returns when the change is to be tried again. */
  function stays({ pod }: MountedPod, error: Error): number {
    log.warn('a volume cannot follow a change', { podUid: pod.metadata.uid, error: error.message });
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
    // Known before its objects are read: a change that comes after the reading is heard.
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

  /** Some at a time, however many Pods show what has changed; changes that come together are written together. */
  const refreshes = createWorkQueue({
    name: 'volumes',
    async process(uid) {
      const underWay = tails.get(uid);
      if (underWay === undefined) return serially(uid, () => writeAnew(uid));
      // That may be a long pull: others go first.
      void underWay.then(() => refreshes.add(uid));
    },
    ...{ log, timers, signal: closing.signal },
  });

  /** Writes what the Pod's volumes show anew, where it differs. */
  async function writeAnew(uid: string): Promise<void> {
    const entry = mounted.get(uid);
    if (entry === undefined) return;
    if (entry.failed) return options.onRetry?.(uid);
    await setUpSome(entry, showsObjects, closing.signal).catch((error: Error) => {
      if (!closing.signal.aborted) refreshAt(entry, stays(entry, error));
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
    // Others may have waited for its claims.
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
      return serially(uid, () => {
        // A mount that was under way has made it known again.
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
    mount: (pod, signal) => serially(pod.metadata.uid ?? '', () => setUpAll(pod, signal)),
    update(pod) {
      const uid = pod.metadata.uid ?? '';
      const entry = mounted.get(uid);
      if (entry === undefined) return;
      const { pod: before } = entry;
      entry.pod = pod;
      if (!entry.failed && showsChange(before, pod, sourceFor(entry).facts)) refreshes.add(uid);
    },
    rewrite: (pod, signal) =>
      serially(pod.metadata.uid ?? '', async () => {
        const entry = mounted.get(pod.metadata.uid ?? '');
        if (entry === undefined) throw new Error('the volumes of the Pod are not mounted');
        entry.pod = pod;
        const { refreshAt: before } = entry;
        await setUpSome(entry, showsPod, signal);
        // Tokens are in other volumes as well.
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
