/** The disk usage of the volumes in the folders of Pods. */

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
  /** The volume's file system if it is in memory or belongs to a claim; absent: the volume is on the disk of the Pod's folder. */
  own?: DiskUsage;
  /** The name of the claim, in the Pod's namespace. */
  claim?: string;
}

/** How long a result is reused, because the duration of a walk through volumes depends on what Pods have written. */
const KEEP_MILLIS = 10_000;

export interface VolumeReader {
  read(pod: Pod): Promise<VolumeUsage[]>;
  /** Only the volumes of claims, without a walk through their files. */
  claims(pods: readonly Pod[]): Promise<{ pod: Pod; usage: VolumeUsage }[]>;
}

/** `directoriesOf`: the directories of the Pod with the UID. `signal` aborts every walk. */
export function createVolumeReader(
  directoriesOf: (podUid: string) => PodDirectories,
  timers: Timers,
  signal: AbortSignal,
): VolumeReader {
  /** Results by Pod UID; `until` is set when the reading has finished. */
  const kept = new Map<string, { reading: Promise<VolumeUsage[]>; until: Millis }>();
  /** The last walk; Pods are read one after the other. */
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

/** Omits volumes that are removed during the measurement, and volumes that are not the Pod's own: hostPath and image volumes. */
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
  const [device, aboveIt, ofPod] = devices;
  if (claim === undefined && device === aboveIt) {
    const { bytes, inodes } = await folderUsage(path, signal);
    const own = device === ofPod ? undefined : await readDiskUsage(path);
    return { name, usedBytes: bytes, inodesUsed: inodes, own };
  }
  const disk = await readDiskUsage(path);
  return { name, usedBytes: disk.usedBytes, inodesUsed: disk.inodes - disk.inodesFree, own: disk, claim };
}
