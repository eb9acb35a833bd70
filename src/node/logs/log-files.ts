/**
 * Manages the files of one container's log: the current file, and rotated files, which are named by the time of their rotation. The newest
 * rotated file stays uncompressed for its readers.
 * Invariants:
 * - A crash at any step loses no line that the limits allow to keep, and the next rotation completes or removes the results of the
 *   interrupted step.
 * - After rotateLog() and boundLog(), all files of the log together have at most maxFiles * maxBytes, not counting the bytes beyond
 *   maxBytes in the current file and in the newest rotated one.
 * Source: pkg/kubelet/logs/container_log_manager.go of v1.33 (limits, names, order of the steps).
 */
import { createReadStream, createWriteStream } from 'node:fs';
import { open, readdir, rename, rm, stat, truncate } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { isDiskFull } from '../../platform/folders/written-file.ts';

export interface LogLimits {
  maxBytes: number;
  /** Including the file that is being written. */
  maxFiles: number;
}

export interface Rotation extends LogLimits {
  path: string;
  /** In milliseconds since the epoch. */
  now: number;
  /** Makes the runtime close the log, and open a new file at `path`. */
  reopen(): Promise<void>;
}

/** `size`: the size of the current file before the rotation, in bytes; undefined if there was no file. */
export interface Turn {
  size: number | undefined;
  rotated: boolean;
}

/**
 * Rotates the log if the current file has reached maxBytes. Without a current file, only makes the runtime reopen the log. Rejects if the
 * runtime does not open a new file; the current file then stays in place.
 */
export async function rotateLog({ path, maxBytes, maxFiles, now, reopen }: Rotation): Promise<Turn> {
  const size = await sizeOf(path);
  if (size === undefined) {
    // The runtime has not created the file yet, the engine ended between rename and reopen, or another program removed the file.
    await reopen();
    return { size, rotated: false };
  }
  if (size < maxBytes) return { size, rotated: false };
  const older = await keepNewest(path, { files: maxFiles - 2, bytes: (maxFiles - 1) * maxBytes - size });
  const name = `${path}.${nameAfter(older.at(-1)?.name, now)}`;
  await rename(path, name);
  try {
    await reopen();
  } catch (error) {
    await rename(name, path);
    throw error;
  }
  return { size, rotated: true };
}

/**
 * Limits the size of a log whose container has ended (`ended`), or of the rotated files of a log that is still being written, by removing
 * the oldest files. A file that exceeds the limit alone, for example because it was written while no engine ran, is cut to its last lines.
 */
export async function boundLog(path: string, { maxBytes, maxFiles }: LogLimits, ended: boolean): Promise<void> {
  const current = ended ? ((await sizeOf(path)) ?? 0) : maxBytes;
  const all = maxFiles * maxBytes;
  if (current > all) await keepEnd(path, all, `${path}.${stamp(0)}${UNFINISHED}`);
  const aside = await keepNewest(path, { files: maxFiles - 1, bytes: Math.max(0, all - current) }, ended ? 0 : 1);
  const newest = aside.at(-1);
  if (newest?.plain !== undefined && newest.bytes > all - current)
    await keepEnd(newest.plain, all - current, newest.plain + UNFINISHED);
}

/** Resolves to the rotated files to compress: all uncompressed files except the newest. */
export async function uncompressed(path: string): Promise<string[]> {
  return (await readAside(path)).slice(0, -1).flatMap(({ plain, gzip }) => (gzip === undefined ? (plain ?? []) : []));
}

/**
 * Replaces a rotated file by a compressed file with the additional ending .gz. Does nothing if the file does not exist. May run
 * concurrently with rotations: if the file is removed during its compression, it stays removed.
 */
export async function compress(file: string, signal: AbortSignal): Promise<void> {
  const before = await stat(file).catch(absent);
  if (before === undefined) return;
  const unfinished = file + UNFINISHED;
  try {
    // Open the file here: a stream that opens a file itself may create the file after the abort, when rm() below has already run.
    const target = (await open(unfinished, 'w', before.mode)).createWriteStream();
    await pipeline(createReadStream(file), createGzip(), target, { signal });
    if ((await sizeOf(file)) === undefined) return;
    await rename(unfinished, file + GZIP);
    await rm(file, { force: true });
  } catch (error) {
    absent(error as NodeJS.ErrnoException);
  } finally {
    await rm(unfinished, { force: true });
  }
}

/** The oldest file comes first. Includes compressed files and unfinished compressed files. */
export async function rotatedFiles(path: string): Promise<string[]> {
  return (await readNames(path)).map(({ file }) => file);
}

const GZIP = '.gz';
const UNFINISHED = '.tmp';
const NAME = /^(\d{8}-\d{6}(?:-\d{3})?)(\.gz|\.tmp)?$/;

/**
 * One rotated file. `name`: the time of its rotation, such as 20260131-093000. `plain`, `gzip`, `unfinished`: the paths of its existing
 * forms, of which there are several during compression. `bytes`: their total size.
 */
interface Aside {
  name: string;
  plain?: string;
  gzip?: string;
  unfinished?: string;
  bytes: number;
}

async function readNames(path: string): Promise<{ file: string; name: string; ending: string }[]> {
  const folder = dirname(path);
  const prefix = `${basename(path)}.`;
  const entries = await readdir(folder).catch(() => []);
  return entries
    .filter((entry) => entry.startsWith(prefix))
    .flatMap((entry) => {
      const [, name, ending = ''] = NAME.exec(entry.slice(prefix.length)) ?? [];
      return name === undefined ? [] : [{ file: join(folder, entry), name, ending }];
    })
    .sort((a, b) => compare(a.name, b.name) || compare(a.ending, b.ending));
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** The oldest file comes first. */
async function readAside(path: string): Promise<Aside[]> {
  const found = new Map<string, Aside>();
  for (const { file, name, ending } of await readNames(path)) {
    const aside = found.get(name) ?? { name, bytes: 0 };
    found.set(name, aside);
    aside[ending === GZIP ? 'gzip' : ending === UNFINISHED ? 'unfinished' : 'plain'] = file;
    aside.bytes += (await sizeOf(file)) ?? 0;
  }
  return [...found.values()];
}

/**
 * Removes leftovers of crashes, then the oldest rotated files until the others are within `bounds`, but keeps at least `least` of them.
 * Resolves to the kept files, the oldest first.
 */
async function keepNewest(path: string, bounds: { files: number; bytes: number }, least = 0): Promise<Aside[]> {
  const kept: Aside[] = [];
  for (const aside of await readAside(path)) {
    const { plain, gzip, unfinished } = aside;
    // `left` is the source of a completed compression, or the unfinished output of a compression whose source no longer exists.
    const left = gzip !== undefined ? plain : plain === undefined ? unfinished : undefined;
    if (left !== undefined) {
      aside.bytes -= (await sizeOf(left)) ?? 0;
      await rm(left, { force: true });
    }
    if (gzip !== undefined) delete aside.plain;
    if (plain !== undefined || gzip !== undefined) kept.push(aside);
  }
  const bytes = (): number => kept.reduce((sum, aside) => sum + aside.bytes, 0);
  while (kept.length > Math.max(bounds.files, least) || (kept.length > least && bytes() > bounds.bytes)) {
    const { plain, gzip, unfinished } = kept.shift() as Aside;
    for (const file of [plain, gzip, unfinished]) if (file !== undefined) await rm(file, { force: true });
  }
  return kept;
}

/**
 * Keeps the last whole lines within `maxBytes`. If the disk is full, keeps the first bytes of the file instead. `unfinished`: the path of
 * the temporary file.
 */
async function keepEnd(file: string, maxBytes: number, unfinished: string): Promise<void> {
  const { size, mode } = await stat(file);
  const start = await nextLine(file, size - maxBytes);
  try {
    await pipeline(createReadStream(file, { start }), createWriteStream(unfinished, { mode }));
    await rename(unfinished, file);
  } catch (error) {
    await rm(unfinished, { force: true });
    if (!isDiskFull(error)) throw error;
    await truncate(file, maxBytes);
  }
}

/** Resolves to `from` if no line begins within 64 KiB. */
async function nextLine(path: string, from: number): Promise<number> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(64 * 1024), 0, 64 * 1024, from - 1);
    return from + Math.max(0, buffer.subarray(0, bytesRead).indexOf('\n'));
  } finally {
    await file.close();
  }
}

async function sizeOf(path: string): Promise<number | undefined> {
  return (await stat(path).catch(absent))?.size;
}

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}

/** Formats a time in UTC in the form 20260131-093000. */
const stamp = (millis: number): string =>
  new Date(millis).toISOString().slice(0, 19).replace(/[-:]/g, '').replace('T', '-');

const timeOf = (name: string): number => {
  const [, year, month, day, hour, minute, second, millis = '0'] =
    /^(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)(?:-(\d{3}))?$/.exec(name) ?? [];
  return Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second), +millis);
};

/**
 * `newest`: the name of the newest rotated file; undefined if there is none. If both files were rotated in the same second, or the clock
 * was set back, milliseconds are added, so that the name sorts after `newest`.
 */
function nameAfter(newest: string | undefined, now: number): string {
  if (newest === undefined) return stamp(now);
  const time = Math.max(now, timeOf(newest) + 1);
  const upstreams = stamp(time);
  return upstreams > newest ? upstreams : `${upstreams}-${String(time % 1000).padStart(3, '0')}`;
}
