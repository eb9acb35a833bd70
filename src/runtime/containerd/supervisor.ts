/** Keeps containerd running: restarts it after each exit until it is stopped, with growing delays while it does not stay up. */
import type { Log, Timers } from '../../platform/platform.ts';
import { delay } from '../cri/connection.ts';
import type { ContainerdExit, ContainerdProcess } from './process.ts';

export interface SupervisorOptions {
  launch(signal?: AbortSignal): ContainerdProcess;
  /** Called before each restart. */
  beforeRestart(): Promise<unknown>;
  log: Log;
  timers: Timers;
}

export interface Supervisor {
  /** The version of the first process. */
  readonly version: string;
  /** undefined while containerd is down. */
  pid(): number | undefined;
  /** Called after each exit that stop() did not cause. */
  onExit(listener: (exit: ContainerdExit) => void): void;
  /** Stops containerd and waits until it has exited. */
  stop(): Promise<void>;
}

const FIRST_RESTART_MILLIS = 50;
const LONGEST_RESTART_MILLIS = 10_000;
/** A containerd that has lived this long counts as stable. */
const STABLE_MILLIS = 30_000;

/** Resolves once the first process serves CRI. Rejects if that one does not start, or when `signal` aborts first. */
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
        log.info('containerd is back');
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
