/** Copies LMDB's data file without unused space, which may contain values that were deleted or overwritten. */
import { chmod, mkdir, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isDiskFull, syncFolder } from '../../platform/folders/written-file.ts';
import { diskFull } from './commit-failure.ts';
import { hasSpace, openTables, type Tables } from './tables.ts';

/** Recognizes a full disk in an error of LMDB's copy, which has no code, but only the text of strerror(3). */
const FULL_TEXT = /no space left on device|quota exceeded/i;

function copyFailure(folder: string, error: unknown): unknown {
  return isDiskFull(error) || FULL_TEXT.test((error as Error).message) ? diskFull(folder, error) : error;
}

/**
 * Writes one consistent state of the open store to data.mdb in the empty folder, with mode 0600. The copy is durable when the promise
 * resolves. Rejects with a StorageFullError if the disk has no space for the copy.
 */
export async function copyTables({ root }: Pick<Tables, 'root'>, folder: string): Promise<void> {
  try {
    await root.backup(folder, true);
    const copy = join(folder, 'data.mdb');
    await chmod(copy, 0o600);
    await using file = await open(copy, 'r+');
    await file.sync();
  } catch (error) {
    throw copyFailure(folder, error);
  }
}

/**
 * Replaces the data file of the closed store in the folder by a copy without unused space. After a crash, the folder contains the complete
 * old or new file, and perhaps a part of a copy, which the next call removes. Rejects with a StorageFullError if the disk has no space for
 * the copy, and like openLmdbStore(). The old file then remains.
 */
export async function copyLmdbFile(directory: string): Promise<void> {
  const folder = join(directory, 'copy');
  await rm(folder, { recursive: true, force: true });
  try {
    await mkdir(folder, { mode: 0o700 });
    const tables = await openTables(directory);
    try {
      await copyTables(tables, folder);
    } finally {
      await tables.root.close();
    }
    await rename(join(folder, 'data.mdb'), join(directory, 'data.mdb'));
    syncFolder(directory);
  } catch (error) {
    throw copyFailure(directory, error);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

export interface FileContent {
  revision: number;
  values: number;
}

/**
 * Deletes the history of the closed store in the folder, and frees its space, so that the data file contains only the newest state. Adds
 * `more` to the revision. Watches and reads of earlier revisions then fail: after a restore, a client must not continue from a revision
 * that the replaced store had used for other changes. Rejects like copyLmdbFile().
 */
export async function forgetHistory(directory: string, more = 0): Promise<FileContent> {
  const tables = await openTables(directory);
  const { root, current, history, meta } = tables;
  let content: FileContent;
  try {
    const revision = (meta.get('revision') ?? 0) + more;
    const forgotten = [...history.getKeys()];
    const commit = { events: [], keepsHistory: false, forgotten: forgotten.length };
    if (!(await hasSpace(tables, commit))) throw diskFull(directory, undefined);
    await root.batch(() => {
      for (const key of forgotten) history.remove(key);
      meta.put('revision', revision);
      meta.put('compacted', revision);
    });
    content = { revision, values: current.getKeysCount() };
  } catch (error) {
    throw copyFailure(directory, error);
  } finally {
    await root.close();
  }
  await copyLmdbFile(directory);
  return content;
}
