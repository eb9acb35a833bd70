/** What the volumes of Pods hold: those that lie in their folders. */
import { lstat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Pod, Volume } from '../../api/generated/types.ts';
import type { Millis, Timers } from '../../platform/platform.ts';
import { claimNameOf } from '../../scheduling/volume-claims.ts';
import { folderOf } from '../volumes/set-up.ts';
import { folderUsage } from './folder-usage.ts';
import { type DiskUsage, readDiskUsage } from './machine-usage.ts';

export interface VolumeUsage {
  name: string;
  usedBytes: number;
  inodesUsed: number;
  /** Where it has a file system of its own, as one of medium Memory; of a claim, that which its volume is on. */
  own?: DiskUsage;
  /** The name of the claim, in the Pod's namespace. */
  claim?: string;
}

/** Walking through volumes takes as long as Pods make it: who asks within this time hears the same. */
const KEEP_MILLIS = 10_000;

export interface VolumeReader {
  read(pod: Pod): Promise<VolumeUsage[]>;
  /** Of their claims alone, without a walk. */
  claims(pods: readonly Pod[]): Promise<{ pod: Pod; usage: VolumeUsage }[]>;
}

/** `podsFolder`: has the folders of the Pods, by UID. `signal` ends every walk. */
export function createVolumeReader(podsFolder: string, timers: Timers, signal: AbortSignal): VolumeReader {
  /** By Pod UID; `until` is known when it has been read. */
  const kept = new Map<string, { reading: Promise<VolumeUsage[]>; until: Millis }>();
  /** One Pod's volumes after the other's. */
  let last: Promise<unknown> = Promise.resolve();
  const folderFor = (pod: Pod): string => join(podsFolder, pod.metadata.uid ?? '');
  return {
    read(pod) {
      for (const [uid, { until }] of kept) if (until <= timers.now()) kept.delete(uid);
      const uid = pod.metadata.uid ?? '';
      const known = kept.get(uid);
      if (known !== undefined) return known.reading;
      const walk = (): Promise<VolumeUsage[]> => readVolumes(pod, folderFor(pod), signal);
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
          const usage = await readVolume(pod, volume, folderFor(pod), signal).catch(() => undefined);
          if (usage !== undefined) found.push({ pod, usage });
        }
      return found;
    },
  };
}

/** `folder`: the Pod's. Volumes that go meanwhile are left out, and those that are no part of it: paths of the node, images. */
export async function readVolumes(pod: Pod, folder: string, signal: AbortSignal): Promise<VolumeUsage[]> {
  const found: VolumeUsage[] = [];
  for (const volume of pod.spec?.volumes ?? []) {
    signal.throwIfAborted();
    const usage = await readVolume(pod, volume, folder, signal).catch(() => undefined);
    if (usage !== undefined) found.push(usage);
  }
  return found;
}

async function readVolume(
  pod: Pod,
  volume: Volume,
  folder: string,
  signal: AbortSignal,
): Promise<VolumeUsage | undefined> {
  const { name } = volume;
  if (volume.hostPath !== undefined || volume.image !== undefined) return undefined;
  const path = folderOf(folder, volume);
  const claim = claimNameOf(pod, volume);
  const [own, parent] = await Promise.all([lstat(path), lstat(dirname(path))]);
  if (claim === undefined && own.dev === parent.dev) {
    const { bytes, inodes } = await folderUsage(path, signal);
    return { name, usedBytes: bytes, inodesUsed: inodes };
  }
  const disk = await readDiskUsage(path);
  return {
    ...{ name, usedBytes: disk.usedBytes, inodesUsed: disk.inodes - disk.inodesFree, own: disk },
    ...(claim === undefined ? {} : { claim }),
  };
}
