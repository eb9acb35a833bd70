/**
 * The time of a simulated cluster: real, or virtual. In virtual time, the clock advances only while a test waits, from timer to timer. It
 * does not advance while requests, or reads and writes of files, are under way.
 */
import type { Millis } from '../../../src/machinery/time.ts';
import { systemTimers } from '../../../src/platform/node-js.ts';
import type { Timers } from '../../../src/platform/platform.ts';
import { createVirtualTimers } from '../../../src/platform/virtual-timers.ts';

export interface ClusterTime {
  timers: Timers;
  /** Resolves with the result of `work`, and lets virtual time pass meanwhile. Rejects if `work` takes longer than `limit`. */
  during<T>(work: Promise<T>, limit?: Millis): Promise<T>;
}

const PATIENCE_MILLIS: Millis = 10 * 60_000;
/** A cluster with many nodes has many timers. */
const MOST_STEPS = 5_000_000;

/** Resources of the event loop that end even if no virtual time passes. */
const BUSY = /^(FSReq|Immediate|FileHandleClose|DirHandle|PROCESSWRAP|ProcessWrap|CLOSEREQ|CloseReq)/;

/** Resolves when the event loop only waits for timers, changes of files, and requests from outside. */
async function quiet(): Promise<void> {
  let quietTurns = 0;
  while (quietTurns < 2) {
    await new Promise((resolve) => setImmediate(resolve));
    quietTurns = process.getActiveResourcesInfo().some((name) => BUSY.test(name)) ? 0 : quietTurns + 1;
  }
}

export function clusterTime(kind: 'real' | 'virtual'): ClusterTime {
  return kind === 'real' ? timeOf(systemTimers(), () => new Promise(() => undefined)) : virtualTime();
}

function virtualTime(): ClusterTime {
  const timers = createVirtualTimers(undefined, { settled: quiet, mostSteps: MOST_STEPS });
  let running: Promise<never> | undefined;
  return timeOf(timers, (isOver) => {
    // All calls of during() share one run of the clock. While a call waits, there is at least the timer of its limit.
    const ended = (): boolean => {
      if (isOver()) running = undefined;
      return running === undefined;
    };
    running ??= timers.run(ended, Number.MAX_SAFE_INTEGER).then(() => new Promise(() => undefined));
    return running;
  });
}

/** The promise of pass() never resolves, but may reject. */
function timeOf(timers: Timers, pass: (isOver: () => boolean) => Promise<never>): ClusterTime {
  let waiting = 0;
  return {
    timers,
    async during(work, limit = PATIENCE_MILLIS) {
      waiting++;
      const late = Promise.withResolvers<never>();
      const timer = timers.at(timers.now() + limit, () => late.reject(new Error(`not done after ${limit / 1000} s`)));
      try {
        return await Promise.race([work, late.promise, pass(() => waiting === 0)]);
      } finally {
        timer.cancel();
        waiting--;
      }
    },
  };
}
