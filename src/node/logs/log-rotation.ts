/**
 * Keeps the logs of containers from filling the disk: while the engine runs, a container's log has at most maxFiles * maxBytes, plus the
 * amount that the container writes between two checks. The faster a log fills, the more frequent its checks are. An idle log is not
 * checked.
 */

import { watch } from 'node:fs';
import { stat } from 'node:fs/promises';
import { pause } from '../../platform/pause.ts';
import type { Log, Timers } from '../../platform/platform.ts';
import { boundLog, compress, type LogLimits, rotateLog, uncompressed } from './log-files.ts';

export interface RotationLimits extends LogLimits {
  /** The longest time between two checks of a log that is being written, if the checks and the watch of the file succeed. */
  intervalMillis: number;
}

/** The defaults of the kubelet's containerLogMaxSize and containerLogMaxFiles. */
export const ROTATION_LIMITS: RotationLimits = { maxBytes: 10 * 1024 * 1024, maxFiles: 5, intervalMillis: 1_000 };

const SHORTEST_MILLIS = 100;
/** The longest wait after a failed check, and the wait if the log's file is missing. */
const LONGEST_RETRY_MILLIS = 10_000;

export interface WrittenLog {
  containerId: string;
  path: string;
  ended: boolean;
}

export interface RotationOptions extends RotationLimits {
  timers: Timers;
  log: Log;
  signal: AbortSignal;
  /**
   * Calls the listener with all logs of each Pod, immediately and at least whenever the logs change. After a Pod was removed, the list is
   * empty.
   */
  follow(listener: (podUid: string, logs: readonly WrittenLog[]) => void): void;
  reopen(containerId: string, signal: AbortSignal): Promise<void>;
  /** Resolves when the log of a container that has ended is complete. Rejects if `signal` is aborted. */
  logEnded(containerId: string): Promise<void>;
}

interface Keeper {
  ended: boolean;
  stop(): void;
  /** Resolves when the checks have stopped. */
  over: Promise<void>;
}

export function startLogRotation(options: RotationOptions): void {
  const { signal, log } = options;
  const pods = new Map<string, Map<string, Keeper>>();
  const compressSoon = createCompressor(log, signal);

  const begin = ({ containerId, path }: WrittenLog): Keeper => {
    const ending = new AbortController();
    const stopping = AbortSignal.any([signal, ending.signal]);
    const over = keepBounded(containerId, path, options, compressSoon, stopping);
    return { ended: false, stop: () => ending.abort(), over };
  };
  const finish = async (keeper: Keeper, { containerId, path }: WrittenLog): Promise<void> => {
    keeper.ended = true;
    keeper.stop();
    await keeper.over;
    try {
      await options.logEnded(containerId);
      if (signal.aborted) return;
      await boundLog(path, options, true);
      compressSoon(await uncompressed(path));
    } catch (error) {
      if (signal.aborted) return;
      log.warn('cannot bound the log of a container that has ended', { path, error: String(error) });
    }
  };
  options.follow((podUid, logs) => {
    if (signal.aborted) return;
    const keepers = pods.get(podUid) ?? new Map<string, Keeper>();
    pods.set(podUid, keepers);
    for (const each of logs) {
      let keeper = keepers.get(each.containerId);
      if (keeper === undefined) {
        keeper = each.ended ? { ended: false, stop() {}, over: Promise.resolve() } : begin(each);
        keepers.set(each.containerId, keeper);
      }
      if (each.ended && !keeper.ended) void finish(keeper, each);
    }
    const present = new Set(logs.map(({ containerId }) => containerId));
    for (const [id, keeper] of keepers) {
      if (present.has(id)) continue;
      keeper.stop();
      keepers.delete(id);
    }
    if (keepers.size === 0) pods.delete(podUid);
  });
}

/** Never rejects. */
async function keepBounded(
  containerId: string,
  path: string,
  options: RotationOptions,
  compressSoon: (files: readonly string[]) => void,
  signal: AbortSignal,
): Promise<void> {
  const { timers, maxBytes, intervalMillis } = options;
  const reopen = (): Promise<void> => options.reopen(containerId, options.signal);
  let last: { size: number; at: number; rotated: boolean } | undefined;
  let retryMillis = intervalMillis;
  while (!signal.aborted) {
    try {
      // By now, the runtime no longer writes to the file that the previous round rotated.
      if (last?.rotated) await boundLog(path, options, false);
      const { size, rotated } = await rotateLog({ path, ...options, now: timers.now(), reopen });
      if (rotated) compressSoon(await uncompressed(path));
      if (size === undefined) {
        await pause(timers, LONGEST_RETRY_MILLIS, signal);
        continue;
      }
      let wait = Math.min(SHORTEST_MILLIS, intervalMillis);
      if (last?.size === size && !rotated)
        await written(path, size, signal).catch(() => pause(timers, intervalMillis, signal));
      else if (last !== undefined)
        wait = untilFull(
          size - last.size,
          timers.now() - last.at,
          rotated ? maxBytes : maxBytes - size,
          intervalMillis,
        );
      last = { size: rotated ? 0 : size, at: timers.now(), rotated };
      await pause(timers, wait, signal);
      retryMillis = intervalMillis;
    } catch (error) {
      if (!signal.aborted) options.log.warn('cannot rotate the log', { path, error: (error as Error).message });
      await pause(timers, retryMillis, signal);
      retryMillis = Math.min(retryMillis * 2, LONGEST_RETRY_MILLIS);
    }
  }
}

/** `written`: the number of bytes that were written in `inMillis`. */
function untilFull(written: number, inMillis: number, bytesLeft: number, longestMillis: number): number {
  const millis = written <= 0 ? longestMillis : (bytesLeft * Math.max(inMillis, 1)) / written;
  return Math.min(Math.max(millis, SHORTEST_MILLIS), longestMillis);
}

/**
 * Resolves at the first change of the file, immediately if the file no longer has the size `size`, or when `signal` aborts. Rejects if the
 * watch fails or cannot begin. The watch ends at the first event, because the kernel reports an event for each line that is written.
 */
function written(path: string, size: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const watcher = watch(path, { persistent: false });
    const done = (): void => {
      signal.removeEventListener('abort', done);
      watcher.close();
      resolve();
    };
    watcher.on('change', done).on('error', (error) => {
      reject(error);
      done();
    });
    signal.addEventListener('abort', done);
    // The file may have changed, or the signal may have aborted, before the watch began.
    stat(path).then((now) => (now.size !== size || signal.aborted) && done(), done);
  });
}

/** Only one file is compressed at a time, so that compression uses at most one processor. */
function createCompressor(log: Log, signal: AbortSignal): (files: readonly string[]) => void {
  const waiting = new Set<string>();
  let busy = false;
  const work = async (): Promise<void> => {
    busy = true;
    // The iteration also visits files that are added while it runs.
    for (const file of waiting) {
      if (signal.aborted) break;
      await compress(file, signal).catch(
        (error: Error) => signal.aborted || log.warn('cannot compress the log', { file, error: error.message }),
      );
      waiting.delete(file);
    }
    busy = false;
  };
  return (files) => {
    for (const file of files) waiting.add(file);
    if (!busy) void work();
  };
}
