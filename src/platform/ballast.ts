/**
 * Room that the engine keeps for itself in the data folder: a file that goes when an engine starts or all Pods are to end.
 * Then also on a disk that Pods have filled there is what it takes to end them, and to write that down.
 */

import { randomFillSync } from 'node:crypto';
import { existsSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const BALLAST_BYTES = 2 ** 20;
/** With less than this left on the disk, others need the room more. */
const PLENTY_BYTES = 16 * BALLAST_BYTES;

const ballastPath = (dataDir: string): string => join(dataDir, 'ballast');

/** Keeps the room where there is plenty. Never fails: an engine goes without. */
export function keepBallast(dataDir: string): void {
  try {
    if (existsSync(ballastPath(dataDir))) return;
    const { bavail, bsize } = statfsSync(dataDir);
    if (bavail * bsize < PLENTY_BYTES) return;
    // At random: a disk that compresses would keep no room for less.
    writeFileSync(ballastPath(dataDir), randomFillSync(Buffer.alloc(BALLAST_BYTES)), { mode: 0o600 });
  } catch {
    dropBallast(dataDir);
  }
}

/** Gives the room away. Never fails: who needs it will. */
export function dropBallast(dataDir: string): void {
  try {
    rmSync(ballastPath(dataDir), { force: true });
  } catch {
    // The disk is read-only, or broken.
  }
}
