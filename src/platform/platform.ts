/**
 * Interfaces to the machine. node-js.ts implements them for a real machine; virtual-timers.ts implements the clock and the timers in
 * virtual time.
 */
import type { Millis } from '../machinery/time.ts';

export interface Clock {
  /** Returns milliseconds since the epoch. */
  now(): Millis;
}

export interface Timer {
  cancel(): void;
}

export interface Timers extends Clock {
  /**
   * Calls `callback` once, at `time` or as soon as possible after it. Never calls `callback` before at() has returned, even if `time` has
   * passed.
   */
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
