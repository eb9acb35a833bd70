/**
 * Copies the store of a data folder for `lifepod backup`. A running engine makes the copy itself, because only one process may open the
 * store at a time.
 *
 * A lock on the data folder itself, not on a file in it, shows that the command is running. If the command is killed, the next `lifepod
 * backup` or the next start of the engine removes its copy.
 */
import { closeSync, constants, existsSync, mkdirSync, openSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { tryFlock, UserError } from '../../platform/files.ts';
import { oneAtATime } from '../../platform/work-in-turns.ts';
import type { FileStore } from '../../store/lmdb/file-store.ts';

export const storeCopyFolder = (dataDir: string): string => join(dataDir, 'backup');

export async function copyStore(store: FileStore, dataDir: string): Promise<void> {
  const folder = storeCopyFolder(dataDir);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { mode: 0o700 });
  await store.copyTo(folder);
}

/** Copies one at a time: the copy for a killed command may still be under way. */
export function storeCopier(store: () => FileStore, dataDir: string): () => Promise<void> {
  const turns = oneAtATime();
  return async () => {
    const leave = await turns.enter();
    try {
      await copyStore(store(), dataDir);
    } finally {
      leave();
    }
  };
}

/** Returns a file descriptor that holds the lock until it is closed; undefined if another process has the lock. */
function lock(dataDir: string): number | undefined {
  const fd = openSync(dataDir, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    if (tryFlock(fd, '--exclusive', '--nonblock')) return fd;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  closeSync(fd);
  return undefined;
}

/**
 * Removes the folder with the copy after `body` has settled. Rejects with a UserError if another `lifepod backup` of the data folder is
 * running.
 */
export async function withStoreCopy<T>(dataDir: string, body: () => Promise<T>): Promise<T> {
  const fd = lock(dataDir);
  if (fd === undefined)
    throw new UserError(`another 'lifepod backup' of ${dataDir} is running: wait until it has finished`);
  try {
    return await body();
  } finally {
    rmSync(storeCopyFolder(dataDir), { recursive: true, force: true });
    closeSync(fd);
  }
}

/** Removes the copy of a killed `lifepod backup`, but not that of a running one. */
export function removeAbandonedCopy(dataDir: string): void {
  const folder = storeCopyFolder(dataDir);
  if (!existsSync(folder)) return;
  const fd = lock(dataDir);
  if (fd === undefined) return;
  rmSync(folder, { recursive: true, force: true });
  closeSync(fd);
}
