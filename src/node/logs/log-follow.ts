/** Follows a log file while it is written, across rotations. Waits for events of the kernel, and never polls. */
import { createReadStream, type FSWatcher, watch } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createGunzip } from 'node:zlib';
import { rotatedFiles } from './log-files.ts';

export interface FollowedFile {
  path: string;
  /** Resolves when the container has ended and the runtime has written all of its log. Absent if the log is already complete. */
  ended?: Promise<void>;
}

const CHUNK_BYTES = 64 * 1024;
const NEWLINE = 0x0a;

export interface Cursor {
  handle: FileHandle;
  position: number;
  /** Whether the bytes read so far end with a complete record; true if none have been read. */
  whole: boolean;
}

/** Resolves to undefined if the file does not exist. */
export async function openLog(path: string): Promise<Cursor | undefined> {
  try {
    return { handle: await open(path, 'r'), position: 0, whole: true };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Reads to the end of the file, or to the offset `end`. The next chunk overwrites the buffer of the previous one. */
export async function* readFrom(
  cursor: Cursor,
  end = Number.POSITIVE_INFINITY,
): AsyncGenerator<Buffer, void, undefined> {
  const buffer = Buffer.alloc(CHUNK_BYTES);
  for (;;) {
    const length = Math.min(buffer.length, end - cursor.position);
    const { bytesRead } = await cursor.handle.read(buffer, 0, length, cursor.position);
    if (bytesRead === 0) return;
    cursor.position += bytesRead;
    cursor.whole = buffer[bytesRead - 1] === NEWLINE;
    yield buffer.subarray(0, bytesRead);
  }
}

/**
 * `begin` moves the cursor of the first file to where reading starts. Ends when the container has ended and the rest of the log has been
 * read, when `signal` aborts, or immediately if the log's folder does not exist.
 */
export async function* followLog(
  file: FollowedFile,
  begin: (cursor: Cursor) => Promise<unknown>,
  signal: AbortSignal,
): AsyncGenerator<Buffer, void, undefined> {
  const changes = watchChanges(file, signal);
  /** `before`: the file from before the last rotation, to which the runtime may still write shortly after the rotation. */
  let current: Opened | undefined;
  let before: Opened | undefined;
  try {
    while (!signal.aborted) {
      // If the container ends after this check, another round of the loop reads the rest.
      const last = changes.ended();
      changes.clear();
      if (current === undefined) {
        current = await openCurrent(file.path);
        if (current !== undefined) await begin(current);
      }
      // Read the rest of the previous file first, because the runtime may still flush buffers to it while it writes to the new file.
      const waitMillis = before === undefined || last ? 0 : await untilQuiet(before);
      const isWritten = before === undefined || last || (waitMillis === 0 && (await hasContent(current)));
      if (before !== undefined) {
        const { position } = before;
        yield* readFrom(before);
        if (before.position === position && (current?.position ?? 0) > 0) {
          await before.handle.close();
          before = undefined;
        }
      }
      // The runtime completes a record in the file in which the record begins: wait for the rest of an incomplete record in the previous
      // file.
      if (current !== undefined && isWritten && (before?.whole !== false || last)) {
        yield* readFrom(current);
        const next = await rotatedTo(current, file.path);
        if (next !== undefined) {
          await before?.handle.close();
          before = current;
          const between = next.aside.filter((path) => !before?.aside.includes(path));
          current = next;
          yield* readFrom(before);
          // The first file of `between` was just read. There are further files if a slow reader is several rotations behind.
          for (const path of between.slice(1)) yield* readAside(path);
          continue;
        }
      }
      if (last) return;
      await changes.next(waitMillis);
    }
  } finally {
    changes.close();
    await before?.handle.close();
    await current?.handle.close();
  }
}

const hasContent = async (cursor: Cursor | undefined): Promise<boolean> =>
  cursor !== undefined && (cursor.position > 0 || (await cursor.handle.stat()).size > 0);

/**
 * A rotated file counts as complete when it has not been written for this time. The runtime closes the file some milliseconds after the
 * rotation, and Node.js reports no event for this.
 */
const QUIET_MILLIS = 200;

async function untilQuiet({ handle }: Cursor): Promise<number> {
  const { mtimeMs } = await handle.stat();
  // The clock may have been set back.
  return Math.max(0, Math.ceil(QUIET_MILLIS - Math.abs(Date.now() - mtimeMs)));
}

interface Opened extends Cursor {
  /** The rotated files that existed when this file was opened, the oldest first, with their names before compression. */
  aside: readonly string[];
}

async function openCurrent(path: string): Promise<Opened | undefined> {
  for (;;) {
    const aside = await asideOf(path);
    const cursor = await openLog(path);
    if (cursor === undefined) return undefined;
    // If the rotated files have changed, the log may have been rotated while it was opened: try again.
    if (aside.join() === (await asideOf(path)).join()) return { ...cursor, aside };
    await cursor.handle.close();
  }
}

async function asideOf(path: string): Promise<string[]> {
  const files = await rotatedFiles(path);
  return [...new Set(files.filter((file) => !file.endsWith('.tmp')).map((file) => file.replace(/\.gz$/, '')))];
}

/** Resolves to undefined if there is no new file at `path`. */
async function rotatedTo(cursor: Cursor, path: string): Promise<Opened | undefined> {
  const [now, open] = await Promise.all([stat(path).catch(() => undefined), cursor.handle.stat()]);
  if (now === undefined || (now.ino === open.ino && now.dev === open.dev)) return undefined;
  return openCurrent(path);
}

async function* readAside(path: string): AsyncGenerator<Buffer, void, undefined> {
  const cursor = await openLog(path);
  if (cursor !== undefined) {
    try {
      yield* readFrom(cursor);
    } finally {
      await cursor.handle.close();
    }
    return;
  }
  try {
    for await (const chunk of createReadStream(`${path}.gz`).pipe(createGunzip())) yield chunk as Buffer;
  } catch (error) {
    // The file was one of the oldest and has been removed.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

interface Changes {
  /** Whether the log is complete: the container has ended, or the folder of the log did not exist at the start. */
  ended(): boolean;
  clear(): void;
  /**
   * Resolves when the log has changed or ended since clear(), or when the signal has aborted; if `millis` is greater than 0, after `millis`
   * milliseconds at the latest.
   */
  next(millis: number): Promise<void>;
  close(): void;
}

/** Watches the folder of the log instead of the file, because rotation replaces the file. */
function watchChanges(file: FollowedFile, signal: AbortSignal): Changes {
  let ended = file.ended === undefined;
  let dirty = false;
  let wake: (() => void) | undefined;
  const changed = (): void => {
    dirty = true;
    wake?.();
  };
  let watcher: FSWatcher | undefined;
  try {
    watcher = watch(dirname(file.path), changed);
    watcher.on('error', changed);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    // The log's directory no longer exists, so nothing more will be written.
    ended = true;
  }
  const over = (): void => {
    ended = true;
    changed();
  };
  file.ended?.then(over, over);
  signal.addEventListener('abort', changed);
  return {
    ended: () => ended,
    clear() {
      dirty = false;
    },
    next: (millis) =>
      new Promise((resolve) => {
        if (dirty) return resolve();
        const timer = millis > 0 ? setTimeout(changed, millis) : undefined;
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      }),
    close() {
      signal.removeEventListener('abort', changed);
      watcher?.close();
    },
  };
}
