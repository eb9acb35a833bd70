/**
 * Reserves disk space for the engine with a file in the data folder. Deleting the file frees enough space to start, end the Pods and record
 * their ends, even if Pods have filled the disk.
 */

import { randomFillSync } from 'node:crypto';
import { existsSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The start of an engine writes about 1 MiB: its log, the kubeconfig, and pages of the store. */
const BALLAST_BYTES = 4 * 2 ** 20;
/** With less free space, the file is not created, because other programs need the space more. */
const PLENTY_BYTES = 16 * 2 ** 20;

const ballastPath = (dataDir: string): string => join(dataDir, 'ballast');

/** Creates the file, unless it exists or less than 16 MiB of the disk are free. Never throws: an engine also runs without the file. */
export function keepBallast(dataDir: string): void {
  try {
    if (existsSync(ballastPath(dataDir))) return;
    const { bavail, bsize } = statfsSync(dataDir);
    if (bavail * bsize < PLENTY_BYTES) return;
    // The bytes are random, because a file system that compresses files would reserve no space for zeros.
    writeFileSync(ballastPath(dataDir), randomFillSync(Buffer.alloc(BALLAST_BYTES)), { mode: 0o600 });
  } catch {
    dropBallast(dataDir);
  }
}

/** Never throws: if the disk is broken, later writes fail and report the problem. */
export function dropBallast(dataDir: string): void {
  try {
    rmSync(ballastPath(dataDir), { force: true });
  } catch {
    // The disk is read-only or broken.
  }
}
