/**
 * Reserves disk space for the engine: a file in the data folder that is deleted when an engine starts or all Pods are to end.
 * The freed space lets the engine end Pods and record that even on a disk that Pods have filled.
 */

import { randomFillSync } from 'node:crypto';
import { existsSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const BALLAST_BYTES = 2 ** 20;
/** No space is reserved if less than this is free, because others need it more. */
const PLENTY_BYTES = 16 * BALLAST_BYTES;

const ballastPath = (dataDir: string): string => join(dataDir, 'ballast');

/** Reserves the space if the disk has plenty. Never throws: an engine also runs without it. */
export function keepBallast(dataDir: string): void {
  try {
    if (existsSync(ballastPath(dataDir))) return;
    const { bavail, bsize } = statfsSync(dataDir);
    if (bavail * bsize < PLENTY_BYTES) return;
    // Random bytes, because a compressing file system would not reserve space for others.
    writeFileSync(ballastPath(dataDir), randomFillSync(Buffer.alloc(BALLAST_BYTES)), { mode: 0o600 });
  } catch {
    dropBallast(dataDir);
  }
}

/** Frees the reserved space. Never throws: later writes report the problem. */
export function dropBallast(dataDir: string): void {
  try {
    rmSync(ballastPath(dataDir), { force: true });
  } catch {
    // The disk is read-only or broken.
  }
}
