/**
 * The real platform: the engine's clock, one timer heap for everyone, pino's structured log.
 */
import { uptime } from 'node:os';
import { pino } from 'pino';
import type { Clock, Log, Millis, Platform, Timer, Timers } from './platform.ts';
import { createTimerHeap } from './timer-heap.ts';

/** setTimeout takes at most 2^31-1 ms; a later time is reached in several steps. */
const MAX_TIMEOUT_MILLIS = 2 ** 31 - 1;

/** The machine's clock, as it is set now: for what others stamp with it. */
export const machineClock: Clock = { now: () => Date.now() };

/** Two clocks that nobody sets. */
export interface SteadyClocks {
  /** Since the start of the process; stands still while the machine is suspended. */
  processMillis(): Millis;
  /** Since the machine's start, to a second or better; goes on meanwhile. */
  bootMillis(): Millis;
}

const steadyClocks: SteadyClocks = { processMillis: () => performance.now(), bootMillis: () => uptime() * 1000 };

/** So often the two are compared at most. */
const COMPARE_MILLIS = 1000;
/** Beyond what the second one is inexact by. */
const SUSPENDED_MILLIS = 2000;
/** Two readings that are further apart are not compared. */
const STALLED_MILLIS = 100;

/**
 * Timers on the engine's own clock: all of them share one setTimeout, for the earliest. The clock is the machine's at the start of
 * the process, counted on in real time: whoever sets the machine's clock later moves no deadline, no back-off and no grace period.
 * The time for which the machine was suspended counts: it has passed for everyone else who reads times in the API.
 */
export function systemTimers({ processMillis, bootMillis }: SteadyClocks = steadyClocks): Timers {
  const heap = createTimerHeap();
  /** undefined: the process stood still between the two readings, which tell nothing then. */
  const readApart = (): Millis | undefined => {
    const ran = processMillis();
    const apart = bootMillis() - ran;
    return processMillis() - ran > STALLED_MILLIS ? undefined : apart;
  };
  let apartAtStart = readApart();
  let comparedAt = processMillis();
  let suspendedMillis = 0;
  const now = (): Millis => {
    const ran = processMillis();
    if (ran - comparedAt >= COMPARE_MILLIS) {
      comparedAt = ran;
      const apart = readApart();
      apartAtStart ??= apart;
      const suspended = (apart ?? 0) - (apartAtStart ?? 0);
      if (apart !== undefined && suspended - suspendedMillis >= SUSPENDED_MILLIS) {
        suspendedMillis = suspended;
        arm();
      }
    }
    return Math.floor(performance.timeOrigin + ran + suspendedMillis);
  };
  let armed: NodeJS.Timeout | undefined;
  const arm = (): void => {
    if (armed !== undefined) clearTimeout(armed);
    armed = undefined;
    const next = heap.nextTime();
    if (next === undefined) return;
    armed = setTimeout(fire, Math.min(Math.max(0, next - now()), MAX_TIMEOUT_MILLIS));
  };
  const fire = (): void => {
    for (const callback of heap.takeDue(now())) callback();
    arm();
  };
  return {
    now,
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
  const destination = pino.destination({ fd: options.fileDescriptor ?? 2, sync: true });
  // A line that the disk does not take is lost: whoever logs goes on.
  destination.on('error', () => undefined);
  const logger = pino({ level: options.level, base: undefined, timestamp: pino.stdTimeFunctions.isoTime }, destination);
  return wrap(logger);
}

export function nodePlatform(level: 'debug' | 'info' | 'warn' | 'error' = 'info'): Platform {
  return { timers: systemTimers(), log: createLog({ level }) };
}
