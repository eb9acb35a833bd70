/** What the volumes of Pods hold: those that lie in their folders. */
import { lstat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Pod, Volume } from '../../api/generated/types.ts';
import type { Millis, Timers } from '../../platform/platform.ts';
import { claimNameOf } from '../../scheduling/volume-claims.ts';
import { folderOf, type PodDirectories } from '../volumes/set-up.ts';
import { folderUsage } from './folder-usage.ts';
import { type DiskUsage, readDiskUsage } from './machine-usage.ts';

export interface VolumeUsage {
  name: string;
  usedBytes: number;
  inodesUsed: number;
  /** The file system that it is on, where that is not the disk of the Pod's folder: a volume in memory, or one of a claim. */
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

/** `directoriesOf`: of the Pod with the UID. `signal` ends every walk. */
export function createVolumeReader(
  directoriesOf: (podUid: string) => PodDirectories,
  timers: Timers,
  signal: AbortSignal,
): VolumeReader {
  /** By Pod UID; `until` is known when it has been read. */
  const kept = new Map<string, { reading: Promise<VolumeUsage[]>; until: Millis }>();
  /** One Pod's volumes after the other's. */
  let last: Promise<unknown> = Promise.resolve();
  const foldersFor = (pod: Pod): PodDirectories => directoriesOf(pod.metadata.uid ?? '');
  return {
    read(pod) {
      for (const [uid, { until }] of kept) if (until <= timers.now()) kept.delete(uid);
      const uid = pod.metadata.uid ?? '';
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

/** Volumes that go meanwhile are left out, and those that are no part of it: paths of the node, images. */
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
    const own = device === ofPod ? {} : { own: await readDiskUsage(path) };
    return { name, usedBytes: bytes, inodesUsed: inodes, ...own };
  }
  const disk = await readDiskUsage(path);
  return {
    ...{ name, usedBytes: disk.usedBytes, inodesUsed: disk.inodes - disk.inodesFree, own: disk },
    ...(claim === undefined ? {} : { claim }),
  };
}
