/**
 * Opens the LMDB environment of the store, and reads and converts the rows of its three tables:
 *
 *   current   key -> [createRevision, modRevision, value]
 *   history   revision -> one entry per changed key: [key] if it did not exist before, else [key, createRevision, modRevision, value]
 *   meta      'revision', 'compacted' -> number
 */
import { chmod, mkdir, open as openFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Database, open, type RootDatabase } from 'lmdb';
import { UserError } from '../../platform/files.ts';
import { isDiskFull } from '../../platform/folders/written-file.ts';
import type { HistoryRecord, UndoChange } from '../history.ts';
import type { RangeOptions, RangeResult, StoredValue } from '../store.ts';
import { comparableKey, firstValues, isKey, type NewestState, prefixEnd } from '../transaction.ts';
import { diskFull } from './commit-failure.ts';
import { type Commit, DataFile, type PageUse } from './data-file.ts';

type CurrentRow = [createRevision: number, modRevision: number, value: Uint8Array];
type HistoryRow = ([key: string] | [key: string, ...CurrentRow])[];

export type ReadTransaction = ReturnType<Tables['current']['useReadTransaction']>;

export interface Tables {
  file: DataFile;
  root: RootDatabase;
  current: Database<CurrentRow, string>;
  history: Database<HistoryRow, number>;
  meta: Database<number, string>;
}

/** This is address space, not disk space. LMDB extends the map when necessary. */
const MAP_BYTES = 4 * 2 ** 30;
/** The size of the part of the lock file that LMDB maps into memory. */
const LOCK_FILE_BYTES = 16 * 1024;
const NEW_DATABASE_BYTES = 128 * 1024;

/**
 * Opens the environment in the folder, or creates one, with files of mode 0600. Rejects with a StorageFullError if the disk is full, and
 * with a UserError after any other error.
 */
export async function openTables(directory: string): Promise<Tables> {
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    // LMDB maps its lock file into memory. If the file had no disk blocks, a full disk would end the process with SIGBUS.
    const created = await createFile(join(directory, 'lock.mdb'), LOCK_FILE_BYTES);
    const dataFile = join(directory, 'data.mdb');
    if ((await createFile(dataFile, 0)) || created) await syncFolder(directory);
    await checkDataFile(dataFile, directory);
    const tables = { ...openEnvironment(directory), file: new DataFile(dataFile) };
    await beginFreeList(tables);
    return tables;
  } catch (error) {
    if (isDiskFull(error)) throw diskFull(directory, error);
    const hint = 'check that this is a data folder of lifepod, is intact, and belongs to this user';
    throw new UserError(`cannot open the store in ${directory}: ${(error as Error).message}; ${hint}`, {
      cause: error,
    });
  }
}

function openEnvironment(directory: string): Omit<Tables, 'file'> {
  const root = open({
    path: directory,
    noSubdir: false,
    mapSize: MAP_BYTES,
    maxDbs: 3,
    // The promise of a commit resolves only when the commit is durable: LMDB syncs the data, then writes the page that makes them visible.
    overlappingSync: false,
    // The store batches its writes itself. If this option were true, lmdb would create another promise, whose rejection cannot be caught.
    eventTurnBatching: false,
  });
  return {
    root,
    current: root.openDB('current', { encoding: 'msgpack' }),
    history: root.openDB('history', { encoding: 'msgpack' }),
    meta: root.openDB('meta', { encoding: 'msgpack' }),
  };
}

/**
 * Makes a small commit if LMDB's list of free pages is empty, as in a compacted copy. LMDB 3.5.6 crashes or fails in a commit that frees
 * hundreds of pages while the list is empty: LMDB stores the list in adjacent pages from the list itself, but the list has no entry yet.
 * Does nothing if the disk has no space for the small commit, because larger commits are then refused, too.
 */
async function beginFreeList(tables: Tables): Promise<void> {
  const { root, meta } = tables;
  if ((root.getStats() as Stats).free.entryCount > 0) return;
  if (!(await hasSpace(tables, { events: [], keepsHistory: false, forgotten: 0 }))) return;
  await root.batch(() => {
    meta.put('revision', meta.get('revision') ?? 0);
  });
}

/** Whether the disk has space for the commit, perhaps without the reserve for later commits. */
export async function hasSpace(tables: Tables, commit: Commit): Promise<boolean> {
  const use = pageUse(tables);
  return (await tables.file.makeRoom(commit, use)) || tables.file.isSafe(commit, use);
}

interface TreeStats {
  entryCount: number;
  treeBranchPageCount: number;
  treeLeafPageCount: number;
  overflowPages: number;
}

/** The types of the package lmdb do not describe the result of getStats(). */
interface Stats extends TreeStats {
  lastPageNumber: number;
  root: TreeStats;
  free: TreeStats;
}

export function pageUse({ root, current, history, meta }: Tables): PageUse {
  const { lastPageNumber: last, root: main, free } = root.getStats() as Stats;
  return {
    last,
    free() {
      const tables = [current, history, meta].map((table) => table.getStats() as Stats);
      const used = [main, free, ...tables].reduce(
        (sum, { treeBranchPageCount, treeLeafPageCount, overflowPages }) =>
          sum + treeBranchPageCount + treeLeafPageCount + overflowPages,
        // The counts of the tables omit LMDB's two meta pages.
        2,
      );
      return last + 1 - used;
    },
  };
}

/** The layout of a meta page: the page header, then magic and version. Source: lmdb.h and mdb.c of the LMDB in the npm package. */
const META_PAGE = { bytes: 4096, flagsOffset: 18, flag: 0x08, magicOffset: 24, magic: 0xbeefc0de, versionOffset: 28 };
const DATA_VERSION = 2;

/** Rejects if LMDB must not open the file: its native code crashes on a damaged or foreign file, and for a new file on a full disk. */
async function checkDataFile(path: string, directory: string): Promise<void> {
  const file = await openFile(path, 'r');
  try {
    const { size } = await file.stat();
    if (size === 0) return await checkSpace(directory);
    const page = Buffer.alloc(META_PAGE.bytes);
    const { bytesRead } = await file.read(page, 0, META_PAGE.bytes, 0);
    const isMeta = (page.readUInt16LE(META_PAGE.flagsOffset) & META_PAGE.flag) !== 0;
    if (bytesRead < META_PAGE.bytes || !isMeta || page.readUInt32LE(META_PAGE.magicOffset) !== META_PAGE.magic) {
      throw new Error('data.mdb is not a database');
    }
    const version = page.readUInt16LE(META_PAGE.versionOffset);
    if (version !== DATA_VERSION) throw new Error(`data.mdb has LMDB's format ${version} instead of ${DATA_VERSION}`);
    if (size < 2 * META_PAGE.bytes) throw new Error('data.mdb is truncated');
  } finally {
    await file.close();
  }
}

async function checkSpace(directory: string): Promise<void> {
  const path = join(directory, 'space');
  try {
    await writeFile(path, Buffer.alloc(NEW_DATABASE_BYTES), { mode: 0o600, flush: true });
  } finally {
    await rm(path, { force: true });
  }
}

/**
 * Creates a file of `sizeBytes` zeros, or overwrites a smaller file with zeros, and sets its mode to 0600. Resolves to false if the file
 * was already large enough.
 */
async function createFile(path: string, sizeBytes: number): Promise<boolean> {
  const known = await stat(path).catch(() => undefined);
  if (known !== undefined) {
    if ((known.mode & 0o777) !== 0o600) await chmod(path, 0o600);
    if (known.size >= sizeBytes) return false;
  }
  const file = await openFile(path, 'w', 0o600);
  try {
    await file.writeFile(Buffer.alloc(sizeBytes));
    await file.sync();
  } finally {
    await file.close();
  }
  return true;
}

async function syncFolder(directory: string): Promise<void> {
  const folder = await openFile(directory, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

export const toStored = (key: string, row: CurrentRow): StoredValue => ({
  key,
  createRevision: row[0],
  modRevision: row[1],
  value: row[2],
});

export const fromStored = (kv: StoredValue): CurrentRow => [kv.createRevision, kv.modRevision, kv.value];

export const toRecord = (revision: number, row: HistoryRow): HistoryRecord => ({
  revision,
  changes: row.map(([key, ...before]) => ({
    key,
    previous: before.length === 0 ? undefined : toStored(key, before as unknown as CurrentRow),
  })),
});

export const fromChanges = (changes: UndoChange[]): HistoryRow =>
  changes.map(({ key, previous }) => (previous === undefined ? [key] : [key, ...fromStored(previous)]));

export function boundsOf({ prefix, after }: RangeOptions): { start: string; exclusiveStart: boolean; end?: string } {
  const isAfter = after !== undefined && after >= prefix;
  const end = prefixEnd(prefix);
  const start = isAfter ? comparableKey(after) : prefix;
  return { start, exclusiveStart: isAfter, end };
}

export function readValue(
  current: Tables['current'],
  key: string,
  transaction?: ReadTransaction,
): StoredValue | undefined {
  if (!isKey(key)) return undefined;
  const row = current.get(key, transaction === undefined ? undefined : { transaction });
  return row === undefined ? undefined : toStored(key, row);
}

export function newestState(
  current: Tables['current'],
  options: RangeOptions,
  transaction: ReadTransaction,
): NewestState {
  const bounds = { ...boundsOf(options), transaction };
  return {
    keys: current.getKeys(bounds),
    read: (key) => readValue(current, key, transaction),
    // doesExist() has no parameter for the transaction. It uses the transaction of this turn of the event loop, which is `transaction`.
    has: (key) => current.doesExist(key),
    countAfter: (key) => current.getKeysCount({ ...bounds, start: key, exclusiveStart: true }),
  };
}

export function readRange(
  current: Tables['current'],
  options: RangeOptions,
  transaction: ReadTransaction,
): Omit<RangeResult, 'revision'> {
  const bounds = { ...boundsOf(options), transaction };
  const items = firstValues(current.getRange(bounds), ({ key, value }) => toStored(key, value), options.limit);
  const last = items.at(-1);
  if (options.limit === undefined || last === undefined) return { items, remaining: 0 };
  const rest = { ...bounds, start: last.key, exclusiveStart: true };
  const remaining = options.remainingAsFlag
    ? [...current.getKeys({ ...rest, limit: 1 })].length
    : current.getKeysCount(rest);
  return { items, remaining };
}
