/**
 * Keeps the logs of containers from filling the disk: a file that has grown too large is set aside, and the runtime told
 * to open a new one. Of the files set aside the newest stays as it is, for whoever reads it; the others are compressed;
 * the oldest go.
 * Boundary: files, and the runtime's ReopenContainerLog. A crash at any step loses no line, and the next turn goes on.
 * Source: pkg/kubelet/logs/container_log_manager.go of v1.33 (limits, names, order of the steps).
 */
import { createReadStream, createWriteStream } from 'node:fs';
import { readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { Log, Timer, Timers } from '../platform/platform.ts';

export interface RotationLimits {
  maxBytes: number;
  /** With the one being written. */
  maxFiles: number;
  intervalMillis: number;
}

/** Defaults of containerLogMaxSize, containerLogMaxFiles and containerLogMonitorInterval. */
export const ROTATION_LIMITS: RotationLimits = { maxBytes: 10 * 1024 * 1024, maxFiles: 5, intervalMillis: 10_000 };

export interface WrittenLog {
  /** Of the container that writes it. */
  containerId: string;
  path: string;
}

export interface RotationOptions extends RotationLimits {
  timers: Timers;
  log: Log;
  signal: AbortSignal;
  /** The logs of the containers that run. */
  logs(): WrittenLog[];
  /** Makes the runtime open the container's log anew. */
  reopen(containerId: string, signal: AbortSignal): Promise<void>;
}

/**
 * Looks at all logs at each interval, one after the other. A poll on purpose: the kernel would tell of every line that
 * any container writes, which costs more than one look at each size.
 */
export function startLogRotation(options: RotationOptions): void {
  const { timers, log, signal, maxBytes, maxFiles } = options;
  let timer: Timer | undefined;
  const turn = async (): Promise<void> => {
    for (const { containerId, path } of options.logs()) {
      if (signal.aborted) return;
      const reopen = (): Promise<void> => options.reopen(containerId, signal);
      await rotateLog({ path, maxBytes, maxFiles, now: timers.now(), reopen }).catch((error: Error) =>
        log.warn('log not rotated', { path, error: error.message }),
      );
    }
    arm();
  };
  const arm = (): void => {
    if (!signal.aborted) timer = timers.at(timers.now() + options.intervalMillis, () => void turn());
  };
  signal.addEventListener('abort', () => timer?.cancel(), { once: true });
  arm();
}

export interface Rotation {
  path: string;
  maxBytes: number;
  maxFiles: number;
  /** Milliseconds since the epoch: the name of the file set aside. */
  now: number;
  /** Makes the runtime open the path anew. */
  reopen(): Promise<void>;
}

/** Returns whether the log was rotated. Rejects where the runtime does not open a new one: the old one then stays in place. */
export async function rotateLog({ path, maxBytes, maxFiles, now, reopen }: Rotation): Promise<boolean> {
  const found = await stat(path).catch(absent);
  if (found === undefined) {
    // It was set aside, and the engine ended before the runtime was told; or someone has removed it.
    await reopen();
    return false;
  }
  if (found.size < maxBytes) return false;
  const aside = `${path}.${stamp(now)}`;
  const older = await rotatedFiles(path);
  // Two in one second would have one name: the next turn will do.
  if (older.some((file) => file === aside || file === aside + GZIP)) return false;
  await tidy(older, maxFiles);
  await rename(path, aside);
  try {
    await reopen();
  } catch (error) {
    await rename(aside, path);
    throw error;
  }
  return true;
}

const GZIP = '.gz';
const UNFINISHED = '.tmp';

/** 20260131-093000 */
const stamp = (now: number): string => new Date(now).toISOString().slice(0, 19).replace(/[-:]/g, '').replace('T', '-');

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}

/** Makes room for one more beside the one being written, and compresses what stays. */
async function tidy(files: readonly string[], maxFiles: number): Promise<void> {
  const unused = files.filter((file) => file.endsWith(UNFINISHED) || files.includes(file + GZIP));
  const used = files.filter((file) => !unused.includes(file));
  const excess = used.slice(0, Math.max(0, used.length - Math.max(0, maxFiles - 2)));
  for (const file of [...unused, ...excess]) await rm(file, { force: true });
  for (const file of used) if (!excess.includes(file) && !file.endsWith(GZIP)) await compress(file);
}

async function compress(file: string): Promise<void> {
  const { mode } = await stat(file);
  const unfinished = file + UNFINISHED;
  await pipeline(createReadStream(file), createGzip(), createWriteStream(unfinished, { mode }));
  await rename(unfinished, file + GZIP);
  await rm(file);
}

/** Everything that was set aside of this log, the oldest first. */
export async function rotatedFiles(path: string): Promise<string[]> {
  const prefix = `${basename(path)}.`;
  const entries = await readdir(dirname(path)).catch(() => []);
  return entries
    .filter((entry) => entry.startsWith(prefix) && /^\d{8}-\d{6}(\.gz|\.tmp)?$/.test(entry.slice(prefix.length)))
    .sort()
    .map((entry) => join(dirname(path), entry));
}
