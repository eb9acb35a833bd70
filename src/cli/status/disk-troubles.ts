/**
 * What `lifepod status` says of the disk of the data folder. It is looked at here: the conditions of the Node are of before
 * where nothing can be written.
 */
import { accessSync, constants, statfsSync } from 'node:fs';
import { binarySize } from '../../machinery/binary-size.ts';

/** With less than this left, the next write of the store or of containerd may fail. */
const FULL_BELOW_BYTES = 2 ** 20;

/** A line for each trouble. */
export function diskTroubles(dataDir: string): string[] {
  const { bavail, bsize, files, ffree } = statfsSync(dataDir);
  const troubles: string[] = [];
  if (bavail * bsize < FULL_BELOW_BYTES)
    troubles.push(`disk of ${dataDir}: full: ${binarySize(bavail * bsize)} are free: free some space`);
  // Some file systems count no inodes.
  if (files > 0 && ffree === 0) troubles.push(`disk of ${dataDir}: full: no inode is free: remove some files`);
  if (isReadOnly(dataDir)) troubles.push(`disk of ${dataDir}: mounted read-only: mount it for writing`);
  return troubles;
}

/** The rights of the folder do not matter: lifepod runs as root. */
function isReadOnly(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EROFS';
  }
}
