/**
 * The real platform: the system clock, one timer heap for everyone, pino's structured log.
 */
import { pino } from 'pino';
import type { Log, Millis, Platform, Timer, Timers } from './platform.ts';
import { createTimerHeap } from './timer-heap.ts';

/** setTimeout takes at most 2^31-1 ms; a later time is reached in several steps. */
const MAX_TIMEOUT_MILLIS = 2 ** 31 - 1;

/** Timers on the system clock: all of them share one setTimeout, for the earliest. */
export function systemTimers(): Timers {
  const heap = createTimerHeap();
  let armed: NodeJS.Timeout | undefined;
  const arm = (): void => {
    if (armed !== undefined) clearTimeout(armed);
    armed = undefined;
    const next = heap.nextTime();
    if (next === undefined) return;
    armed = setTimeout(fire, Math.min(Math.max(0, next - Date.now()), MAX_TIMEOUT_MILLIS));
  };
  const fire = (): void => {
    for (const callback of heap.takeDue(Date.now())) callback();
    arm();
  };
  return {
    now: () => Date.now(),
    at(time: Millis, callback: () => void): Timer {
      const entry = heap.add(time, callback);
      if (heap.nextTime() === time) arm();
      return {
        cancel: () => {
          heap.remove(entry);
          // An empty heap must not keep the process alive.
          if (heap.nextTime() === undefined) arm();
        },
      };
    },
  };
}

/** A structured log, one JSON object a line on standard error (or the file descriptor given). */
export function createLog(options: { level: 'debug' | 'info' | 'warn' | 'error'; fileDescriptor?: number }): Log {
  const wrap = (inner: pino.Logger): Log => ({
    debug: (message, fields) => inner.debug(fields ?? {}, message),
    info: (message, fields) => inner.info(fields ?? {}, message),
    warn: (message, fields) => inner.warn(fields ?? {}, message),
    error: (message, fields) => inner.error(fields ?? {}, message),
    child: (fields) => wrap(inner.child(fields)),
  });
  const logger = pino(
    { level: options.level, base: undefined, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ fd: options.fileDescriptor ?? 2, sync: true }),
  );
  return wrap(logger);
}

export function nodePlatform(level: 'debug' | 'info' | 'warn' | 'error' = 'info'): Platform {
  return { timers: systemTimers(), log: createLog({ level }) };
}
