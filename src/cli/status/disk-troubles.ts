/**
 * Finds problems with the disk of the data folder, for `lifepod status`. The disk is inspected directly, because the engine cannot
 * update the conditions of the Node when it cannot write to the disk.
 */
import { accessSync, constants, statfsSync } from 'node:fs';
import { binarySize } from '../../machinery/binary-size.ts';

/** If less space than this is free, the next write of the store or of containerd may fail. */
const FULL_BELOW_BYTES = 2 ** 20;

export function diskTroubles(dataDir: string): string[] {
  const { bavail, bsize, files, ffree } = statfsSync(dataDir);
  const troubles: string[] = [];
  if (bavail * bsize < FULL_BELOW_BYTES)
    troubles.push(`disk of ${dataDir}: full: only ${binarySize(bavail * bsize)} left: free some space`);
  // Some file systems have no inodes and report 0 files.
  if (files > 0 && ffree === 0) troubles.push(`disk of ${dataDir}: full: no inodes left: remove some files`);
  if (isReadOnly(dataDir)) troubles.push(`disk of ${dataDir}: mounted read-only: mount it for writing`);
  return troubles;
}

/** Ignores other errors: permissions do not affect the engine, which runs as root. */
function isReadOnly(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EROFS';
  }
}
