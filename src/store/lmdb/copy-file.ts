/** Replaces LMDB's data file by a copy without unused space, which may contain values that were deleted or overwritten. */
import { chmod, mkdir, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { syncFolder } from '../../platform/files.ts';
import { diskFull } from './commit-failure.ts';
import { openTables } from './tables.ts';

/** The errors of a full disk. LMDB's copy fails with a text only: that of strerror(3). */
const FULL_CODES: readonly unknown[] = ['ENOSPC', 'EDQUOT'];
const FULL_TEXT = /no space left on device|quota exceeded/i;

/**
 * Replaces the data file of the closed store in the folder. After a crash, the folder contains the old file or the new one, complete, and
 * perhaps a part of a copy, which the next call removes. Rejects with a StorageFullError if the disk has no space for the copy, and like
 * openLmdbStore(); the old file then remains.
 */
export async function copyLmdbFile(directory: string): Promise<void> {
  const folder = join(directory, 'copy');
  await rm(folder, { recursive: true, force: true });
  try {
    await mkdir(folder, { mode: 0o700 });
    const { root } = await openTables(directory);
    try {
      await root.backup(folder, true);
    } finally {
      await root.close();
    }
    const copy = join(folder, 'data.mdb');
    await chmod(copy, 0o600);
    await using file = await open(copy, 'r+');
    await file.sync();
    await rename(copy, join(directory, 'data.mdb'));
    syncFolder(directory);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw FULL_CODES.includes(code) || FULL_TEXT.test(message) ? diskFull(directory, error) : error;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
