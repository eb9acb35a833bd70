import { uptime } from 'node:os';
import { isatty } from 'node:tty';
import { pino } from 'pino';
import type { Millis } from '../machinery/time.ts';
import { isJournal } from './log/journal.ts';
import { type LogFormat, type LogLevel, type TextLineOptions, textLine } from './log/text-line.ts';
import type { Clock, Log, Platform, Timer, Timers } from './platform.ts';
import { createTimerHeap } from './timer-heap.ts';

/** The longest delay that setTimeout supports. A longer delay needs several timeouts. */
const MAX_TIMEOUT_MILLIS = 2 ** 31 - 1;

/** The machine's wall clock can be set. Other programs, such as the container runtime, use it for their timestamps. */
export const machineClock: Clock = { now: () => Date.now() };

/** These clocks cannot be set. */
export interface SteadyClocks {
  /** Returns the time since the start of the process, without the time during which the machine was suspended. */
  processMillis(): Millis;
  /** Returns the time since the boot, including the time during which the machine was suspended. Accurate to 1 s or better. */
  bootMillis(): Millis;
}

const steadyClocks: SteadyClocks = { processMillis: () => performance.now(), bootMillis: () => uptime() * 1000 };

const COMPARE_MILLIS = 1000;
/** The smallest difference that counts as a suspension. It exceeds the inaccuracy of bootMillis(). */
const SUSPENDED_MILLIS = 2000;
/** If reading both clocks takes longer than this, the readings are not compared. */
const STALLED_MILLIS = 100;

/**
 * Returns timers on the engine's own clock. The clock starts with the machine's time at the start of the process and advances in real time,
 * so setting the machine's clock later changes no deadline, back-off or grace period. The clock includes the time during which the machine
 * was suspended, because that time has also passed for clients with their own clocks.
 */
export function systemTimers({ processMillis, bootMillis }: SteadyClocks = steadyClocks): Timers {
  const heap = createTimerHeap();
  /** Returns the difference between the two clocks; undefined if the process stalled between the readings, so that it is inaccurate. */
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
          // Without timers, the timeout must not keep the process alive, so arm() clears it.
          if (heap.nextTime() === undefined) arm();
        },
      };
    },
  };
}

export interface LogOptions {
  level: LogLevel;
  /** The default is standard error. */
  fileDescriptor?: number;
  /** The default is `text`. */
  format?: LogFormat | undefined;
}

type Write = (level: LogLevel, message: string, fields: Record<string, unknown>) => void;

/** Returns a structured log, which writes one line per message: a JSON object, or text for people. */
export function createLog({ level, fileDescriptor = 2, format }: LogOptions): Log {
  const destination = pino.destination({ fd: fileDescriptor, sync: true });
  // A log line that cannot be written is dropped; the caller must not fail.
  destination.on('error', () => undefined);
  const isTerminal = isatty(fileDescriptor);
  const journal = isJournal(fileDescriptor, process.env);
  const lines = { colors: isTerminal && !process.env['NO_COLOR'], journal };
  const write = format === 'json' ? writeJson(destination) : writeText(destination, lines);
  return boundLog(level, write, {});
}

const LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];

/** A message's own field replaces the bound field with the same name. */
function boundLog(least: LogLevel, write: Write, bound: Readonly<Record<string, unknown>>): Log {
  const at = (level: LogLevel) =>
    LEVELS.indexOf(level) < LEVELS.indexOf(least)
      ? () => undefined
      : (message: string, fields?: Record<string, unknown>) => write(level, message, { ...bound, ...fields });
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (fields) => boundLog(least, write, { ...bound, ...fields }),
  };
}

/** pino writes these fields itself. A second field with such a name would make the object ambiguous. */
const OWN_FIELDS = ['level', 'time', 'msg'];

function writeJson(destination: pino.DestinationStream): Write {
  const logger = pino({ level: 'debug', base: undefined, timestamp: pino.stdTimeFunctions.isoTime }, destination);
  return (level, message, fields) => {
    for (const name of OWN_FIELDS) {
      if (!(name in fields)) continue;
      fields[`${name}_`] = fields[name];
      delete fields[name];
    }
    logger[level](fields, message);
  };
}

const writeText =
  (destination: pino.DestinationStream, options: TextLineOptions): Write =>
  (level, message, fields) =>
    destination.write(textLine({ time: new Date(), level, message, fields }, options));

export function nodePlatform(level: LogLevel = 'info', format?: LogFormat): Platform {
  return { timers: systemTimers(), log: createLog({ level, format }) };
}
