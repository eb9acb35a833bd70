/**
 * What the machine still has, as eviction signals.
 * Source: "Node-pressure Eviction", "Eviction signals" (v1.33): memory counts as available that no process needs now, so
 * without the pages of files that were used lately; statfs tells of disks; the kernel's limits of tasks. The disk of the
 * images is looked at wherever the runtime names it, also where it is the one of the node.
 */
import { stat } from 'node:fs/promises';
import { type DiskUsage, readDiskUsage, readMachineUsage, readProcessLimits } from '../usage/machine-usage.ts';
import type { Observation, Observations } from './thresholds.ts';

export interface Folders {
  /** Of the Pods' volumes and logs. */
  dataDir: string;
  /** Of the images and of what containers write beside their volumes, where it is known. */
  imageDir?: string;
}

export const hasSeparateImages = async ({ dataDir, imageDir }: Folders): Promise<boolean> =>
  imageDir !== undefined &&
  (await stat(imageDir).then(
    async ({ dev }) => dev !== (await stat(dataDir)).dev,
    () => false,
  ));

export async function readSignals({ dataDir, imageDir }: Folders): Promise<Observations> {
  const [{ memory }, nodefs, imagefs, { maxPid, running }] = await Promise.all([
    readMachineUsage(() => 0),
    readDiskUsage(dataDir),
    imageDir === undefined ? undefined : readDiskUsage(imageDir).catch(() => undefined),
    readProcessLimits(),
  ]);
  return {
    'memory.available': {
      available: memory.availableBytes,
      capacity: memory.availableBytes + memory.workingSetBytes,
    },
    'nodefs.available': bytesOf(nodefs),
    // Some file systems count no inodes.
    ...(nodefs.inodes === 0 ? {} : { 'nodefs.inodesFree': inodesOf(nodefs) }),
    ...(imagefs === undefined ? {} : { 'imagefs.available': bytesOf(imagefs) }),
    ...(imagefs === undefined || imagefs.inodes === 0 ? {} : { 'imagefs.inodesFree': inodesOf(imagefs) }),
    'pid.available': { available: maxPid - running, capacity: maxPid },
  };
}

const bytesOf = ({ availableBytes, capacityBytes }: DiskUsage): Observation => ({
  available: availableBytes,
  capacity: capacityBytes,
});

const inodesOf = ({ inodesFree, inodes }: DiskUsage): Observation => ({ available: inodesFree, capacity: inodes });
