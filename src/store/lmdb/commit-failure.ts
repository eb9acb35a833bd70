/** Converts the error of a failed LMDB commit to the error with which the calls of the batch reject. */
import { statfs } from 'node:fs/promises';
import { constants } from 'node:os';
import { StorageFullError } from '../store.ts';

/** LMDB's error code for a memory map that is full and cannot grow. Source: lmdb.h. */
const MDB_MAP_FULL = -30792;
/** If less space than this is free, an unknown error of a write is reported as a full disk, because LMDB reports a short write as EIO. */
const FULL_BELOW_BYTES = 256 * 1024;

export const diskFull = (directory: string, cause: unknown): StorageFullError =>
  new StorageFullError(directory, 'the disk is full', 'free some space and try again', cause);

/**
 * Resolves with the error for the calls of the batch, and with whether the environment must be reopened. After ENOSPC, EDQUOT and
 * MDB_MAP_FULL, and after a StorageFullError, which prevented the commit, the environment is still usable. After another error, such as EIO
 * when it wrote a page, LMDB may refuse all further writes.
 */
export async function commitFailure(
  directory: string,
  error: unknown,
): Promise<{ failure: StorageFullError; reopen: boolean }> {
  if (error instanceof StorageFullError) return { failure: error, reopen: false };
  const cause = await rootCause(error);
  const { code, message } = cause as { code?: number; message: string };
  if (code === constants.errno.ENOSPC || code === constants.errno.EDQUOT) {
    return { failure: diskFull(directory, cause), reopen: false };
  }
  if (code === MDB_MAP_FULL) {
    const whatToDo = 'delete objects that are not needed and try again';
    const failure = new StorageFullError(directory, 'the database cannot grow any more', whatToDo, cause);
    return { failure, reopen: false };
  }
  const { bavail, bsize } = await statfs(directory);
  const full = bavail * bsize < FULL_BELOW_BYTES;
  const failure = full
    ? diskFull(directory, cause)
    : new StorageFullError(directory, message, 'check the disk and try again', cause);
  return { failure, reopen: true };
}

/**
 * Resolves with the cause of an error of lmdb: the error with which the promise in its field `commitError` rejects. Resolves with the
 * error itself if there is no such promise or it does not reject.
 */
async function rootCause(error: unknown): Promise<unknown> {
  const { commitError } = error as { commitError?: Promise<unknown> };
  if (commitError === undefined) return error;
  try {
    await commitError;
    return error;
  } catch (cause) {
    return cause;
  }
}
