import { lstat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Pod, Volume } from '../../api/generated/types.ts';
import { uidOf } from '../../machinery/meta.ts';
import type { Millis } from '../../machinery/time.ts';
import type { Timers } from '../../platform/platform.ts';
import { claimNameOf } from '../../scheduling/volume-claims.ts';
import { folderOf, type PodDirectories } from '../volumes/set-up.ts';
import { folderUsage } from './folder-usage.ts';
import { type DiskUsage, readDiskUsage } from './machine-usage.ts';

export interface VolumeUsage {
  name: string;
  usedBytes: number;
  inodesUsed: number;
  /** The file system of a volume that is in memory or belongs to a claim; absent for volumes on the disk of the Pod's folder. */
  own?: DiskUsage;
  claim?: string;
}

/** A result is reused for this long, because a walk through the volumes is slow if the Pod has written many files. */
const KEEP_MILLIS = 10_000;

export interface VolumeReader {
  /** Omits hostPath and image volumes. A result is reused for KEEP_MILLIS. */
  read(pod: Pod): Promise<VolumeUsage[]>;
  /** Measures the volumes of claims without a walk through their files. */
  claims(pods: readonly Pod[]): Promise<{ pod: Pod; usage: VolumeUsage }[]>;
}

/** `signal` aborts every walk. */
export function createVolumeReader(
  directoriesOf: (podUid: string) => PodDirectories,
  timers: Timers,
  signal: AbortSignal,
): VolumeReader {
  /** `until` is infinite until the reading has finished. */
  const kept = new Map<string, { reading: Promise<VolumeUsage[]>; until: Millis }>();
  /** The next walk waits for the end of this one, so that only one Pod is measured at a time. */
  let last: Promise<unknown> = Promise.resolve();
  const foldersFor = (pod: Pod): PodDirectories => directoriesOf(uidOf(pod));
  return {
    read(pod) {
      for (const [uid, { until }] of kept) if (until <= timers.now()) kept.delete(uid);
      const uid = uidOf(pod);
      const known = kept.get(uid);
      if (known !== undefined) return known.reading;
      const walk = (): Promise<VolumeUsage[]> => readVolumes(pod, foldersFor(pod), signal);
      const entry = { reading: last.then(walk, walk), until: Number.POSITIVE_INFINITY };
      last = entry.reading;
      kept.set(uid, entry);
      const read = (): void => {
        entry.until = timers.now() + KEEP_MILLIS;
      };
      entry.reading.then(read, read);
      return entry.reading;
    },
    async claims(pods) {
      const found: { pod: Pod; usage: VolumeUsage }[] = [];
      for (const pod of pods)
        for (const volume of pod.spec?.volumes ?? []) {
          if (claimNameOf(pod, volume) === undefined) continue;
          const usage = await readVolume(pod, volume, foldersFor(pod), signal).catch(() => undefined);
          if (usage !== undefined) found.push({ pod, usage });
        }
      return found;
    },
  };
}

/**
 * Omits volumes that cannot be read, for example because they are being removed, and hostPath and image volumes, because they do not belong
 * to the Pod.
 */
export async function readVolumes(pod: Pod, folders: PodDirectories, signal: AbortSignal): Promise<VolumeUsage[]> {
  const found: VolumeUsage[] = [];
  for (const volume of pod.spec?.volumes ?? []) {
    signal.throwIfAborted();
    const usage = await readVolume(pod, volume, folders, signal).catch(() => undefined);
    if (usage !== undefined) found.push(usage);
  }
  return found;
}

async function readVolume(
  pod: Pod,
  volume: Volume,
  folders: PodDirectories,
  signal: AbortSignal,
): Promise<VolumeUsage | undefined> {
  const { name } = volume;
  if (volume.hostPath !== undefined || volume.image !== undefined) return undefined;
  const path = folderOf(folders, volume);
  const claim = claimNameOf(pod, volume);
  const devices = await Promise.all([path, dirname(path), folders.disk].map(async (each) => (await lstat(each)).dev));
  const [device, parentDevice, podDevice] = devices;
  if (claim === undefined && device === parentDevice) {
    const { bytes, inodes } = await folderUsage(path, signal);
    const own = device === podDevice ? undefined : await readDiskUsage(path);
    return { name, usedBytes: bytes, inodesUsed: inodes, own };
  }
  const disk = await readDiskUsage(path);
  return { name, usedBytes: disk.usedBytes, inodesUsed: disk.inodes - disk.inodesFree, own: disk, claim };
}
