/**
 * Lets only so many commands start at the same time, in the order in which they came.
 *
 * Starting a command costs a runtime some 20 ms of processor time. Where more are due than the machine can start, all of
 * them together would miss their timeouts, and containers that are well would count as ill; in turn, they are merely
 * asked less often. A command's own time begins when it starts.
 */
import type { Timers } from '../../platform/platform.ts';
import type { ExecPort } from './exec.ts';

/** After this a command has started, or its machine is too busy to tell; a slow one must not hold up the others. */
const STARTING_MILLIS = 200;

/** `limit` commands start at once; those that end sooner make way sooner. */
export function limitStarts(runtime: ExecPort, timers: Timers, limit: number): ExecPort {
  let free = limit;
  const waiting = new Set<() => void>();

  const enter = (signal: AbortSignal): Promise<void> | undefined => {
    signal.throwIfAborted();
    if (free > 0) {
      free--;
      return undefined;
    }
    return new Promise((resolve, reject) => {
      const abort = (): void => {
        waiting.delete(next);
        reject(signal.reason);
      };
      const next = (): void => {
        waiting.delete(next);
        signal.removeEventListener('abort', abort);
        resolve();
      };
      waiting.add(next);
      signal.addEventListener('abort', abort, { once: true });
    });
  };
  const leave = (): void => {
    const [next] = waiting;
    if (next === undefined) free++;
    else next();
  };

  return {
    execSync: async (id, command, timeoutMillis, signal) => {
      await enter(signal);
      let starting = true;
      const started = (): void => {
        if (starting) leave();
        starting = false;
      };
      const timer = timers.at(timers.now() + STARTING_MILLIS, started);
      try {
        return await runtime.execSync(id, command, timeoutMillis, signal);
      } finally {
        timer.cancel();
        started();
      }
    },
  };
}
