/**
 * What the rest needs of the machine, as interfaces: clock, timers, log. node.ts is the real one;
 * simulation/ has a virtual one. Files and processes: see files.ts, processes.ts.
 */
/** Milliseconds since the epoch. Defined here as well as in src/machinery/time.ts, because this folder may import nothing. */
export type Millis = number;

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): Millis;
}

export interface Timer {
  cancel(): void;
}

export interface Timers extends Clock {
  /** Calls once at (or as soon as possible after) the time; in the past: soon. Never synchronously. */
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
