/** Calls a function at the earliest requested time, but never while an earlier call is running. */
import type { Millis } from '../../machinery/time.ts';
import { onAbort } from '../../platform/on-abort.ts';
import type { Timer, Timers } from '../../platform/platform.ts';

export interface Sweeper {
  /** Requests a sweep at `at` or earlier. A request that is due before start() is dropped, because start() sweeps. */
  request(at: Millis): void;
  /** Runs the first sweep, and resolves when it has ended. */
  start(): Promise<void>;
}

/** `sweep` resolves with the time of the next sweep; undefined if none is needed until request() is called. */
export function createSweeper(
  { timers, signal }: { timers: Timers; signal: AbortSignal },
  sweep: () => Promise<Millis | undefined>,
): Sweeper {
  let timer: { at: Millis; timer: Timer } | undefined;
  let isStarted = false;
  let isSweeping = false;
  /** Whether another sweep became due while a sweep was running. */
  let again = false;

  function request(at: Millis): void {
    if (signal.aborted || (timer !== undefined && timer.at <= at)) return;
    timer?.timer.cancel();
    timer = { at, timer: timers.at(at, () => void run()) };
  }

  async function run(): Promise<void> {
    timer?.timer.cancel();
    timer = undefined;
    again ||= isSweeping;
    if (!isStarted || isSweeping) return;
    isSweeping = true;
    try {
      const nextAt = await sweep();
      if (nextAt !== undefined) request(nextAt);
    } finally {
      isSweeping = false;
    }
    if (again) request(timers.now());
    again = false;
  }

  onAbort(signal, () => timer?.timer.cancel());
  return {
    request,
    async start() {
      isStarted = true;
      await run();
    },
  };
}
