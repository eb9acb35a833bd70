/**
 * The logs of containers, read from the files that the runtime writes.
 * Boundary: files alone; which attempts there are, and when they end, the caller tells.
 * Invariants: memory is bounded whatever the size of a log; a tail reads the end of the file only; following waits for the
 * kernel's events, never polls; what a container wrote before its end is read before the log ends.
 */
import { type FSWatcher, watch } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { LogOptions, NodeConnection } from '../machinery/node-connection.ts';
import { badRequest } from '../machinery/status.ts';
import { createLogParser, logFormat } from './log-lines.ts';

export interface LogFile {
  path: string;
  /** Resolves when the container has ended and the runtime has written all of its log; absent: that has happened. */
  ended?: Promise<void>;
  /** What sinceSeconds counts from, in milliseconds since the epoch; absent: now. */
  now?: number;
}

const CHUNK_BYTES = 64 * 1024;
const NEWLINE = 0x0a;

/** Ends at the end of the file or, with follow, after the container's end or when `signal` aborts. No file: an empty log. */
export async function* readContainerLog(
  file: LogFile,
  options: LogOptions,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  const parse = createLogParser(logFormat(options, file.now ?? Date.now()));
  let left = options.limitBytes ?? Number.POSITIVE_INFINITY;
  for await (const bytes of options.follow === true ? followFile(file, options, signal) : readOnce(file, options)) {
    if (signal.aborted) return;
    const output = parse(bytes);
    if (output.length === 0) continue;
    yield output.length > left ? output.subarray(0, left) : output;
    left -= output.length;
    if (left <= 0) return;
  }
}

async function* readOnce(file: LogFile, options: LogOptions): AsyncGenerator<Buffer, void, undefined> {
  const handle = await openIfPresent(file.path);
  if (handle === undefined) return;
  try {
    yield* readFrom({ handle, position: await startPosition(handle, options) });
  } finally {
    await handle.close();
  }
}

interface Cursor {
  handle: FileHandle;
  position: number;
}

/** Everything from the cursor to the end of the file as it is now; moves the cursor. The buffer yielded is used again. */
async function* readFrom(cursor: Cursor): AsyncGenerator<Buffer, void, undefined> {
  const buffer = Buffer.alloc(CHUNK_BYTES);
  for (;;) {
    const { bytesRead } = await cursor.handle.read(buffer, 0, buffer.length, cursor.position);
    if (bytesRead === 0) return;
    cursor.position += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

async function* followFile(
  file: LogFile,
  options: LogOptions,
  signal: AbortSignal,
): AsyncGenerator<Buffer, void, undefined> {
  const changes = watchChanges(file, signal);
  let cursor: Cursor | undefined;
  try {
    while (!signal.aborted) {
      // Read before the file is: whatever comes later makes another round.
      const last = changes.ended();
      changes.clear();
      if (cursor === undefined) {
        const handle = await openIfPresent(file.path);
        if (handle !== undefined) cursor = { handle, position: await startPosition(handle, options) };
      }
      if (cursor !== undefined) {
        yield* readFrom(cursor);
        const next = await rotatedTo(cursor, file.path);
        if (next !== undefined) {
          // The runtime writes to the new file alone once it exists; the old one may have got more before.
          yield* readFrom(cursor);
          await cursor.handle.close();
          cursor = next;
          continue;
        }
      }
      if (last) return;
      await changes.next();
    }
  } finally {
    changes.close();
    await cursor?.handle.close();
  }
}

/** The file that is now at the path, where it is another one than is open. */
async function rotatedTo(cursor: Cursor, path: string): Promise<Cursor | undefined> {
  const handle = await openIfPresent(path);
  if (handle === undefined) return undefined;
  const [now, before] = await Promise.all([handle.stat(), cursor.handle.stat()]);
  if (now.ino !== before.ino || now.dev !== before.dev) return { handle, position: 0 };
  await handle.close();
  return undefined;
}

interface Changes {
  /** Whether the container had ended. */
  ended(): boolean;
  clear(): void;
  /** Resolves when something has happened since clear(). */
  next(): Promise<void>;
  close(): void;
}

/** The folder is watched, not the file: rotation replaces the file. */
function watchChanges(file: LogFile, signal: AbortSignal): Changes {
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
    // The folder is gone: nothing will be written any more.
    ended = true;
  }
  file.ended?.then(
    () => {
      ended = true;
      changed();
    },
    () => {
      ended = true;
      changed();
    },
  );
  signal.addEventListener('abort', changed);
  return {
    ended: () => ended,
    clear() {
      dirty = false;
    },
    next: () =>
      new Promise((resolve) => {
        if (dirty) resolve();
        else wake = resolve;
      }),
    close() {
      signal.removeEventListener('abort', changed);
      watcher?.close();
    },
  };
}

async function openIfPresent(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** The offset of the first of the last `tailLines` records; 0 without a tail. */
async function startPosition(handle: FileHandle, { tailLines }: LogOptions): Promise<number> {
  if (tailLines === undefined) return 0;
  const { size } = await handle.stat();
  const buffer = Buffer.alloc(CHUNK_BYTES);
  let missing = tailLines;
  // The newline that ends the last record begins no further one.
  let last = true;
  for (let end = size; end > 0; ) {
    const begin = Math.max(0, end - CHUNK_BYTES);
    const { bytesRead } = await handle.read(buffer, 0, end - begin, begin);
    for (let at = buffer.lastIndexOf(NEWLINE, bytesRead - 1); at >= 0; ) {
      if (!last && --missing <= 0) return begin + at + 1;
      if (last && tailLines === 0) return size;
      last = false;
      if (at === 0) break;
      at = buffer.lastIndexOf(NEWLINE, at - 1);
    }
    end = begin;
  }
  return tailLines === 0 ? size : 0;
}

/** One run of a container. */
export interface LoggedAttempt {
  attempt: number;
  /** The log file. */
  path: string;
  state: 'created' | 'running' | 'exited' | 'unknown';
  /** Resolves when the runtime says that it has ended. */
  ended: Promise<void>;
}

export interface ContainerLogs {
  attempts: readonly LoggedAttempt[];
  /** The reason where the container's status is `waiting` now. */
  waitingReason?: string;
}

/**
 * The logs of the node's containers for the API server. `lookup` knows the containers of a Pod; undefined: the node has none
 * of that name. Errors are worded as upstream's kubelet words them.
 */
export function createLogSource(
  lookup: (podUid: string, container: string) => ContainerLogs | undefined,
  now: () => number,
): Pick<NodeConnection, 'logs'> {
  return {
    async *logs(pod, container, options, signal) {
      const { path, ended } = selectAttempt(pod.name, container, lookup(pod.uid, container), options.previous === true);
      yield* readContainerLog({ path, ended, now: now() }, options, signal);
    },
  };
}

function selectAttempt(
  podName: string,
  container: string,
  logs: ContainerLogs | undefined,
  previous: boolean,
): LoggedAttempt {
  const about = `container ${JSON.stringify(container)} in pod ${JSON.stringify(podName)}`;
  if (logs === undefined) throw badRequest(`${about} is not available`);
  const attempts = logs.attempts.filter(({ state }) => state !== 'created').sort((a, b) => b.attempt - a.attempt);
  const waiting = logs.waitingReason !== undefined;
  if (previous) {
    // While it waits for its restart, the run that has just ended is the previous one.
    const found = attempts.slice(waiting ? 0 : 1).find(({ state }) => state === 'exited');
    if (found === undefined) throw badRequest(`previous terminated ${about} not found`);
    return found;
  }
  const current = attempts[0];
  if (current !== undefined) return current;
  switch (logs.waitingReason) {
    case undefined:
      throw badRequest(`${about} is waiting to start - no logs yet`);
    case 'ErrImagePull':
      throw badRequest(`${about} is waiting to start: image can't be pulled`);
    case 'ImagePullBackOff':
      throw badRequest(`${about} is waiting to start: trying and failing to pull image`);
    default:
      throw badRequest(`${about} is waiting to start: ${logs.waitingReason}`);
  }
}
