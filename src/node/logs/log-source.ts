/**
 * Invariants:
 * - Memory is bounded whatever the size of a log, and a tail reads only the end of the file.
 * - A log that is followed until its container has ended contains all requested records of the container, within `limitBytes`, unless a
 *   rotated file was removed before a slow reader reached it.
 */
import type { FileHandle } from 'node:fs/promises';
import { badRequest } from '../../machinery/status.ts';
import type { LogOptions, NodeConnection } from '../../ports/node-connection.ts';
import { createLogParser, logFormat } from './cri-log-format.ts';
import { type Cursor, type FollowedFile, followLog, openLog, readFrom } from './log-follow.ts';

export interface LogFile extends FollowedFile {
  /** The time to which sinceSeconds is relative, in milliseconds since the epoch. Absent: the current time. */
  now?: number;
}

const CHUNK_BYTES = 64 * 1024;
const NEWLINE = 0x0a;

/**
 * Ends at the end of the file or, with `follow`, after the container has ended. Ends earlier when `limitBytes` have been yielded or when
 * `signal` aborts. Without `follow`, a missing file is an empty log.
 */
export async function* readContainerLog(
  file: LogFile,
  options: LogOptions,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  const parse = createLogParser(logFormat(options, file.now ?? Date.now()));
  let left = options.limitBytes ?? Number.POSITIVE_INFINITY;
  /** Resolves to the current size of the file. */
  const begin = async (cursor: Cursor): Promise<number> => {
    const { size } = await cursor.handle.stat();
    cursor.position = await startPosition(cursor.handle, size, options);
    return size;
  };
  const follows = options.follow === true;
  for await (const bytes of follows ? followLog(file, begin, signal) : readOnce(file.path, begin)) {
    if (signal.aborted) return;
    const output = parse(bytes);
    if (output.length === 0) continue;
    yield output.length > left ? output.subarray(0, left) : output;
    left -= output.length;
    if (left <= 0) return;
  }
}

/** Reads up to the size that the file has at the start: later records neither become part of a tail nor delay the end of the reading. */
async function* readOnce(
  path: string,
  begin: (cursor: Cursor) => Promise<number>,
): AsyncGenerator<Buffer, void, undefined> {
  const cursor = await openLog(path);
  if (cursor === undefined) return;
  try {
    yield* readFrom(cursor, await begin(cursor));
  } finally {
    await cursor.handle.close();
  }
}

/** Resolves to the offset of the first of the last `tailLines` records; 0 if `tailLines` is undefined or the file has fewer records. */
async function startPosition(handle: FileHandle, size: number, { tailLines }: LogOptions): Promise<number> {
  if (tailLines === undefined) return 0;
  const buffer = Buffer.alloc(CHUNK_BYTES);
  let missing = tailLines;
  // The newline at the end of the last record does not start another record.
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

export interface LoggedAttempt {
  attempt: number;
  path: string;
  state: 'created' | 'running' | 'exited' | 'unknown';
  /** Resolves when the run has ended and the runtime has written all of its log. Never rejects. */
  ended(): Promise<void>;
}

export interface ContainerLogs {
  attempts: readonly LoggedAttempt[];
  /** Absent if the container is in another state than `waiting`. */
  waitingReason?: string;
}

/**
 * `lookup` returns undefined if the Pod is not on the node. `now` returns the time to which sinceSeconds is relative. Errors have the
 * kubelet's wording.
 */
export function createLogSource(
  lookup: (podUid: string, container: string) => ContainerLogs | undefined,
  now: () => number,
): Pick<NodeConnection, 'logs'> {
  return {
    async *logs(pod, container, options, signal) {
      const run = selectAttempt(pod.name, container, lookup(pod.uid, container), options.previous === true);
      const ended = run.ended();
      if (run.state === 'exited') await ended;
      yield* readContainerLog({ path: run.path, ended, now: now() }, options, signal);
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
    // While the container waits for its restart, the run that has just ended counts as the previous one.
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
