/**
 * Interfaces to the machine: clock, timers, log. node-js.ts has the real implementation, simulation/ a virtual one.
 * For files and processes see files.ts and processes.ts.
 */
import type { Millis } from '../machinery/time.ts';

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): Millis;
}

export interface Timer {
  cancel(): void;
}

export interface Timers extends Clock {
  /** Calls back once, at the time or as soon as possible after it (soon, if the time has passed); never synchronously. */
  at(time: Millis, callback: () => void): Timer;
}

export interface Log {
  debug(message: string, fields?: Record<string, unknown>): void;
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
  child(fields: Record<string, unknown>): Log;
}

export interface Platform {
  timers: Timers;
  log: Log;
}
