import { statfs } from 'node:fs/promises';
import { constants } from 'node:os';
import { StorageFullError } from '../store.ts';

/** The memory map is full and cannot grow. Source: lmdb.h. */
const MDB_MAP_FULL = -30792;
/** LMDB reports a short write as EIO, so an unknown error is reported as a full disk if less space than this is free. */
const FULL_BELOW_BYTES = 256 * 1024;

export const diskFull = (directory: string, cause: unknown): StorageFullError =>
  new StorageFullError(directory, 'the disk is full', 'free some space and try again', cause);

/**
 * Converts the error of a failed commit. `reopen`: whether the environment must be reopened, because LMDB may refuse all further writes.
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

/** lmdb's error may have a promise in the field `commitError`, which rejects with the cause. */
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
