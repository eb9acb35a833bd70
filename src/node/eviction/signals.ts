/**
 * Source: "Node-pressure Eviction", "Eviction signals" (v1.33): available memory excludes recently used file pages; disks are measured by
 * statfs; processes are compared with the kernel's limits on tasks.
 */
import { stat } from 'node:fs/promises';
import { type DiskUsage, readDiskUsage, readMachineUsage, readProcessLimits } from '../usage/machine-usage.ts';
import type { Observation, Observations } from './thresholds.ts';

export interface Folders {
  /** Holds the Pods' volumes and logs. */
  dataDir: string;
  /** Holds the images and the root file systems of containers; absent if the runtime does not report it. */
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
    'nodefs.inodesFree': inodesOf(nodefs),
    'imagefs.available': imagefs && bytesOf(imagefs),
    'imagefs.inodesFree': imagefs && inodesOf(imagefs),
    'pid.available': { available: maxPid - running, capacity: maxPid },
  };
}

const bytesOf = ({ availableBytes, capacityBytes }: DiskUsage): Observation => ({
  available: availableBytes,
  capacity: capacityBytes,
});

/** Some file systems do not count inodes. */
const inodesOf = ({ inodesFree, inodes }: DiskUsage): Observation | undefined =>
  inodes === 0 ? undefined : { available: inodesFree, capacity: inodes };
