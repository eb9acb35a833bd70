/**
 * Keeps containerd running until stop() is called. The delay before a restart doubles each time, up to 10 s. It is reset to 50 ms if
 * containerd has run for more than 30 s.
 */
import type { Log, Timers } from '../../platform/platform.ts';
import { delay } from '../cri/connection.ts';
import type { ContainerdExit, ContainerdProcess } from './process.ts';

export interface SupervisorOptions {
  launch(signal?: AbortSignal): ContainerdProcess;
  /** Called before each restart. containerd is restarted when the promise has resolved, unless stop() has been called before. */
  beforeRestart(): Promise<unknown>;
  log: Log;
  timers: Timers;
}

export interface Supervisor {
  /** The version after the first start. */
  readonly version: string;
  /** Returns undefined while containerd is not running. */
  pid(): number | undefined;
  /** The listener is called after each exit of containerd, until stop() is called. */
  onExit(listener: (exit: ContainerdExit) => void): void;
  /** Resolves when containerd has exited. */
  stop(): Promise<void>;
}

const FIRST_RESTART_MILLIS = 50;
const LONGEST_RESTART_MILLIS = 10_000;
const STABLE_MILLIS = 30_000;

/** Resolves when containerd serves CRI. Rejects if the first start fails or `signal` aborts during the first start. */
export async function superviseContainerd(options: SupervisorOptions, signal?: AbortSignal): Promise<Supervisor> {
  const { launch, beforeRestart, log, timers } = options;
  const exitListeners: ((exit: ContainerdExit) => void)[] = [];
  const stopping = new AbortController();
  let startedAt = timers.now();
  let current = launch(signal);
  const version = await current.ready;

  const keepRunning = async (): Promise<void> => {
    for (let wait = FIRST_RESTART_MILLIS; ; wait = Math.min(wait * 2, LONGEST_RESTART_MILLIS)) {
      const exit = await current.exited;
      if (stopping.signal.aborted) return;
      if (timers.now() - startedAt > STABLE_MILLIS) wait = FIRST_RESTART_MILLIS;
      log.warn('containerd ended; starting it again', { ...exit, waitMillis: wait });
      for (const listener of exitListeners) listener(exit);
      await delay(wait, timers, stopping.signal).catch(() => undefined);
      await beforeRestart();
      if (stopping.signal.aborted) return;
      startedAt = timers.now();
      try {
        current = launch();
        await current.ready;
        log.info('containerd serves CRI again');
      } catch (error) {
        log.error('containerd does not start', { error: String(error) });
      }
    }
  };
  const ended = keepRunning();
  return {
    version,
    pid: () => current.pid(),
    onExit: (listener) => {
      exitListeners.push(listener);
    },
    stop: async () => {
      stopping.abort();
      await current.end();
      await ended;
    },
  };
}
