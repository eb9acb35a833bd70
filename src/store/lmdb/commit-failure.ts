/** Whether the disk has room for a commit of LMDB, and what a failed one means. */
import { statfsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { constants } from 'node:os';
import { StorageFullError, type StoreEvent } from '../store.ts';
import { eventValue } from '../transaction.ts';

/** Source: lmdb.h */
const MDB_MAP_FULL = -30792;
/** With less than this left, a write that failed for another reason failed for this one (LMDB calls a short write EIO). */
const FULL_BELOW_BYTES = 256 * 1024;

/** What a commit writes beside values: pages of the trees, and the list of those that are free. */
const COMMIT_BYTES = 128 * 1024;

export const diskFull = (directory: string, cause: unknown): StorageFullError =>
  new StorageFullError(directory, 'the disk is full', 'free some space and try again', cause);

/**
 * Throws a StorageFullError where the disk has no room for the values that the events write, and for those before them, which go to
 * the history. LMDB must not find that out by itself: after some commits that failed with ENOSPC its memory is corrupt, and the process
 * ends with "free(): invalid size" (seen with lmdb 3.5.6, values of 20 kB to 900 kB).
 */
export function checkRoom(directory: string, events: readonly StoreEvent[]): void {
  const sizes = events.map((event) => (eventValue(event)?.value.length ?? 0) + (event.previous?.value.length ?? 0));
  const { bfree, bsize } = statfsSync(directory);
  if (bfree * bsize >= sizes.reduce((sum, each) => sum + each, COMMIT_BYTES)) return;
  throw diskFull(directory, undefined);
}

/**
 * The error for the writers, and whether the environment must be opened anew: LMDB refuses every further write once
 * it could not write a page that it had promised (EIO), but a full disk leaves it as it was.
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

/** lmdb rejects with a general error that holds a promise of the real one. */
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
