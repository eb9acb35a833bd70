/** The real platform: the engine's clock, timers that share one heap, and a structured log. */
import { uptime } from 'node:os';
import { pino } from 'pino';
import type { Millis } from '../machinery/time.ts';
import type { Clock, Log, Platform, Timer, Timers } from './platform.ts';
import { createTimerHeap } from './timer-heap.ts';

/** The longest delay that setTimeout supports. A timer beyond it is reached with several calls. */
const MAX_TIMEOUT_MILLIS = 2 ** 31 - 1;

/** The machine's wall clock, which can be set. Timestamps of other programs, such as the container runtime, are those of this clock. */
export const machineClock: Clock = { now: () => Date.now() };

/** Two clocks that cannot be set. */
export interface SteadyClocks {
  /** Time since the start of the process, without the time during which the machine was suspended. */
  processMillis(): Millis;
  /** Time since the boot of the machine, including the time during which it was suspended. Accurate to 1 s or better. */
  bootMillis(): Millis;
}

const steadyClocks: SteadyClocks = { processMillis: () => performance.now(), bootMillis: () => uptime() * 1000 };

/** Minimum time between two comparisons of processMillis() and bootMillis(). */
const COMPARE_MILLIS = 1000;
/** Smallest increase of bootMillis() - processMillis() that counts as a suspension; larger than the inaccuracy of bootMillis(). */
const SUSPENDED_MILLIS = 2000;
/** If reading both clocks takes longer than this, the readings are not compared. */
const STALLED_MILLIS = 100;

/**
 * Returns timers on the engine's own clock. All timers share one setTimeout, which is set for the earliest of them. The clock starts
 * with the machine's time at the start of the process and advances in real time, so setting the machine's clock later changes no
 * deadline, back-off or grace period. The clock includes the time during which the machine was suspended, because that time has also
 * passed for clients that compare times in the API with their own clocks.
 */
export function systemTimers({ processMillis, bootMillis }: SteadyClocks = steadyClocks): Timers {
  const heap = createTimerHeap();
  /** Returns bootMillis() - processMillis(); undefined if the process stalled between the readings, so that the result is inaccurate. */
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
          // If no timer is left, the timeout must not keep the process alive, so let arm() clear it.
          if (heap.nextTime() === undefined) arm();
        },
      };
    },
  };
}

/** Returns a structured log, which writes one JSON object per line to `fileDescriptor`, by default standard error. */
export function createLog(options: { level: 'debug' | 'info' | 'warn' | 'error'; fileDescriptor?: number }): Log {
  const wrap = (inner: pino.Logger): Log => ({
    debug: (message, fields) => inner.debug(fields ?? {}, message),
    info: (message, fields) => inner.info(fields ?? {}, message),
    warn: (message, fields) => inner.warn(fields ?? {}, message),
    error: (message, fields) => inner.error(fields ?? {}, message),
    child: (fields) => wrap(inner.child(fields)),
  });
  const destination = pino.destination({ fd: options.fileDescriptor ?? 2, sync: true });
  // A log line that cannot be written is dropped; the caller must not fail.
  destination.on('error', () => undefined);
  const logger = pino({ level: options.level, base: undefined, timestamp: pino.stdTimeFunctions.isoTime }, destination);
  return wrap(logger);
}

export function nodePlatform(level: 'debug' | 'info' | 'warn' | 'error' = 'info'): Platform {
  return { timers: systemTimers(), log: createLog({ level }) };
}
