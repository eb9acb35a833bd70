/**
 * Interfaces to the machine: clock, timers and log. The implementation for a real machine is in node-js.ts, the one in virtual time in
 * src/simulation. Files and processes have no interface: see files.ts and processes.ts.
 */
/**
 * Milliseconds since the epoch, or a duration in milliseconds. Also defined in src/machinery/time.ts, because this folder may import
 * nothing.
 */
export type Millis = number;

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): Millis;
}

export interface Timer {
  cancel(): void;
}

export interface Timers extends Clock {
  /** Calls `callback` once, at `time` or as soon as possible after it. Never calls it synchronously, even if the time has passed. */
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
