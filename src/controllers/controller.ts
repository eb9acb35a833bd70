/** What every controller is given. */
import type { Client } from '../client/client.ts';
import type { Log, Timers } from '../platform/platform.ts';

/** A timer that is so late was slept over: the machine was suspended, and what the API says of the node is of before. */
export const SLEPT_MILLIS = 10_000;

export interface ControllerOptions {
  client: Client;
  timers: Timers;
  log: Log;
  /** Ends the controller. */
  signal: AbortSignal;
}
