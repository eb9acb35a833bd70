/**
 * The volumes of the node's Pods: made before the containers, gone after them.
 * Boundary: one folder a Pod, <rootDirectory>/<pod UID>; reads objects through the client, mounts with mount(8).
 * Invariants:
 *  1. mount() and unmount() may be repeated at any time, also after a crash in the middle.
 *  2. Nothing outside <rootDirectory> is ever removed; a folder with a live mount in it is not removed.
 *  3. Files of configMap, secret, downwardAPI and projected volumes change all at once.
 *  4. A token in a volume is replaced before 80% of its life have passed.
 */
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pod, Volume } from '../api/generated/types.ts';
import type { Client } from '../client/client.ts';
import type { Log, Timer, Timers } from '../platform/platform.ts';
import type { DownwardFacts } from './downward.ts';
import { mountsUnder, unmountUnder } from './mounts.ts';
import { type Payload, writePayload } from './volumes/atomic-writer.ts';
import { makeFolder, setUpEmptyDir, setUpMemoryFolder } from './volumes/empty-dir.ts';
import { setUpHostPath } from './volumes/host-path.ts';
import {
  collectConfigMap,
  collectDownward,
  collectProjected,
  collectSecret,
  type PayloadSource,
} from './volumes/payload.ts';

/** A volume cannot be made as things are; trying later may succeed. Reason and message are those of the Event. */
export class VolumeError extends Error {
  override readonly name = 'VolumeError';
  readonly reason = 'FailedMount';
  constructor(volumeName: string, cause: string) {
    super(`MountVolume.SetUp failed for volume ${JSON.stringify(volumeName)} : ${cause}`);
  }
}

export interface VolumeManager {
  /** Makes all volumes of the Pod; call it again after a restart. Rejects with a VolumeError. */
  mount(pod: Pod, signal: AbortSignal): Promise<void>;
  /** Unmounts and removes the Pod's volumes. Rejects where a mount is busy; safe to repeat. */
  unmount(podUid: string, signal: AbortSignal): Promise<void>;
  /** unmount(), and the rest of the Pod's folder goes. */
  remove(podUid: string, signal: AbortSignal): Promise<void>;
  /** Where the volume is on the node. */
  hostPath(podUid: string, pod: Pod, volumeName: string): string;
  podDirectory(podUid: string): string;
  /** Removes the folders of Pods that are not known any more. */
  cleanOrphans(knownUids: ReadonlySet<string>, signal: AbortSignal): Promise<void>;
  /** Ends the rotation of tokens; volumes stay. */
  close(): void;
}

export interface VolumeManagerOptions {
  /** <data-dir>/pods */
  rootDirectory: string;
  client: Client;
  timers: Timers;
  log: Log;
  nodeName: string;
  /** Allocatable of the node, for resourceFieldRef in downwardAPI volumes. */
  allocatable?: Readonly<Record<string, string>>;
}

const RETRY_MILLIS = 30_000;

/** Folder names of upstream's volume plugins. */
const folderNames: Readonly<Record<string, string>> = {
  emptyDir: 'kubernetes.io~empty-dir',
  configMap: 'kubernetes.io~configmap',
  secret: 'kubernetes.io~secret',
  downwardAPI: 'kubernetes.io~downward-api',
  projected: 'kubernetes.io~projected',
  hostPath: 'kubernetes.io~host-path',
};

/** The one field beside `name`. A volume without a source is an emptyDir, as the API's defaults make it. */
const volumeKind = (volume: Volume): string =>
  Object.entries(volume).find(([key, value]) => key !== 'name' && value !== undefined && value !== null)?.[0] ??
  'emptyDir';

function folderOf(podDirectory: string, volume: Volume): string {
  const kind = volumeKind(volume);
  const folder = folderNames[kind];
  if (folder === undefined) throw new VolumeError(volume.name, `volume kind ${JSON.stringify(kind)} is not supported`);
  return join(podDirectory, 'volumes', folder, volume.name);
}

export function createVolumeManager(options: VolumeManagerOptions): VolumeManager {
  const { rootDirectory, client, timers, log } = options;
  /** Pods with tokens: when to renew them. */
  const refreshes = new Map<string, { pod: Pod; at: number }>();
  /** The last operation on each Pod's folder: they run one after another. */
  const tails = new Map<string, Promise<unknown>>();
  const closing = new AbortController();
  let armed: { timer: Timer; at: number } | undefined;

  const podDirectory = (uid: string): string => {
    if (!/^[A-Za-z0-9][A-Za-z0-9-]*$/.test(uid)) throw new Error(`not a Pod UID: ${JSON.stringify(uid)}`);
    return join(rootDirectory, uid);
  };

  function serially<T>(uid: string, operation: () => Promise<T>): Promise<T> {
    const result = (tails.get(uid) ?? Promise.resolve()).then(operation, operation);
    const tail = result.then(
      () => undefined,
      () => undefined,
    );
    tails.set(uid, tail);
    void tail.then(() => {
      if (tails.get(uid) === tail) tails.delete(uid);
    });
    return result;
  }

  function sourceFor(pod: Pod): PayloadSource {
    const facts: DownwardFacts = {
      nodeName: options.nodeName,
      hostIps: [],
      podIps: [],
      allocatable: options.allocatable ?? {},
    };
    return { client, pod, facts, now: () => timers.now() };
  }

  /** Sets one volume up; returns when its token is to be renewed. */
  async function setUp(pod: Pod, volume: Volume, signal: AbortSignal): Promise<number | undefined> {
    const folder = folderOf(podDirectory(pod.metadata.uid ?? ''), volume);
    const source = sourceFor(pod);
    const write = async (payload: Payload): Promise<void> => {
      await writePayload(folder, payload, timers.now(), pod.spec?.securityContext?.fsGroup);
    };
    if (volume.hostPath !== undefined) {
      await setUpHostPath(volume.hostPath);
    } else if (volume.projected !== undefined) {
      const { files, refreshAt } = await collectProjected(
        source,
        volume.projected.sources ?? [],
        volume.projected.defaultMode,
      );
      // Secrets and tokens do not touch the disk.
      await setUpMemoryFolder(folder, 0, signal);
      await write(files);
      return refreshAt;
    } else if (volume.secret !== undefined) {
      const files = await collectSecret(source, { ...volume.secret, name: volume.secret.secretName ?? '' });
      await setUpMemoryFolder(folder, 0, signal);
      await write(files);
    } else if (volume.configMap !== undefined) {
      const files = await collectConfigMap(source, { ...volume.configMap, name: volume.configMap.name ?? '' });
      await makeFolder(folder);
      await write(files);
    } else if (volume.downwardAPI !== undefined) {
      await makeFolder(folder);
      await write(collectDownward(source, volume.downwardAPI.items ?? [], volume.downwardAPI.defaultMode));
    } else {
      await setUpEmptyDir(folder, volume.emptyDir ?? {}, pod, signal);
    }
    return undefined;
  }

  async function setUpAll(pod: Pod, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await mkdir(podDirectory(pod.metadata.uid ?? ''), { recursive: true, mode: 0o750 });
    const results = await Promise.allSettled(
      (pod.spec?.volumes ?? []).map(async (volume) => {
        try {
          return await setUp(pod, volume, signal);
        } catch (error) {
          if (error instanceof VolumeError || signal.aborted) throw error;
          throw new VolumeError(volume.name, (error as Error).message);
        }
      }),
    );
    const failed = results.find((result) => result.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
    const times = results.map((result) => (result.status === 'fulfilled' ? result.value : undefined));
    const at = Math.min(...times.filter((time) => time !== undefined));
    if (at !== Number.POSITIVE_INFINITY) refreshes.set(pod.metadata.uid ?? '', { pod, at });
    arm();
  }

  function arm(): void {
    const at = Math.min(...[...refreshes.values()].map((refresh) => refresh.at));
    if (armed?.at === at || closing.signal.aborted) return;
    armed?.timer.cancel();
    armed = at === Number.POSITIVE_INFINITY ? undefined : { at, timer: timers.at(at, refreshDue) };
  }

  function refreshDue(): void {
    armed = undefined;
    for (const [uid, refresh] of refreshes) {
      if (refresh.at > timers.now()) continue;
      refresh.at = timers.now() + RETRY_MILLIS;
      serially(uid, async () => {
        if (refreshes.has(uid)) await setUpAll(refresh.pod, closing.signal);
      }).catch((error: Error) => {
        if (!closing.signal.aborted) log.warn('cannot renew a token', { podUid: uid, error: error.message });
      });
    }
    arm();
  }

  /** `parts`: of the Pod's folder; '.' for all of it. */
  async function removeParts(uid: string, parts: readonly string[], signal: AbortSignal): Promise<void> {
    const folder = podDirectory(uid);
    await unmountUnder(folder, signal);
    const left = await mountsUnder(folder);
    if (left.length > 0) throw new Error(`cannot remove ${folder}: ${left[0]} is still mounted`);
    for (const part of parts) await rm(join(folder, part), { recursive: true, force: true });
  }

  const removal =
    (parts: readonly string[]) =>
    (uid: string, signal: AbortSignal): Promise<void> => {
      refreshes.delete(uid);
      arm();
      return serially(uid, () => removeParts(uid, parts, signal));
    };
  const unmount = removal(['volumes', 'volume-subpaths']);
  const remove = removal(['']);

  return {
    podDirectory,
    mount: (pod, signal) => serially(pod.metadata.uid ?? '', () => setUpAll(pod, signal)),
    unmount,
    remove,
    hostPath(podUid, pod, volumeName) {
      const volume = pod.spec?.volumes?.find(({ name }) => name === volumeName);
      if (volume === undefined)
        throw new VolumeError(volumeName, `volume ${JSON.stringify(volumeName)} does not exist`);
      return volume.hostPath?.path ?? folderOf(podDirectory(podUid), volume);
    },
    async cleanOrphans(knownUids, signal) {
      for (const uid of await readdir(rootDirectory).catch(() => [])) {
        if (knownUids.has(uid)) continue;
        await remove(uid, signal).catch((error: Error) =>
          log.warn('cannot remove the folder of a Pod that is gone', { podUid: uid, error: error.message }),
        );
      }
    },
    close() {
      closing.abort();
      armed?.timer.cancel();
    },
  };
}
