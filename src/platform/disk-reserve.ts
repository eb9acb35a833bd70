/**
 * Reserves disk space for the engine with a file in the data folder. The file is deleted when an engine starts, when the node shuts
 * down, and by `lifepod down`. With the freed space, the engine can start, end the Pods and record their ends, even if Pods have filled the
 * disk. If there is enough space, the engine creates the file at the end of its start, when a Pod has ended, and when the pressure
 * conditions of the node change.
 */

import { randomFillSync } from 'node:crypto';
import { existsSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The size of the file. The start of an engine writes about 1 MiB: its log, the kubeconfig, and pages of the store. */
const BALLAST_BYTES = 4 * 2 ** 20;
/** If less space than this is free, the file is not created, because other programs need the space more. */
const PLENTY_BYTES = 16 * 2 ** 20;

const ballastPath = (dataDir: string): string => join(dataDir, 'ballast');

/** Creates the file, if it is missing and at least 16 MiB of the disk are free. Never throws: an engine also runs without the file. */
export function keepBallast(dataDir: string): void {
  try {
    if (existsSync(ballastPath(dataDir))) return;
    const { bavail, bsize } = statfsSync(dataDir);
    if (bavail * bsize < PLENTY_BYTES) return;
    // The bytes are random, because a file system that compresses files would reserve no space for a file of zeros.
    writeFileSync(ballastPath(dataDir), randomFillSync(Buffer.alloc(BALLAST_BYTES)), { mode: 0o600 });
  } catch {
    dropBallast(dataDir);
  }
}

/** Deletes the file. Never throws: if the disk is broken, later writes fail and report the problem. */
export function dropBallast(dataDir: string): void {
  try {
    rmSync(ballastPath(dataDir), { force: true });
  } catch {
    // The disk is read-only or broken.
  }
}
