/** The options that every controller takes. */
import type { Client } from '../client/client.ts';
import type { Log, Timers } from '../platform/platform.ts';

/**
 * A timer that fires this late or later means that the machine was suspended, so that the state of the node in the API is
 * from before the suspension.
 */
export const SUSPENDED_MILLIS = 10_000;

export interface ControllerOptions {
  client: Client;
  timers: Timers;
  log: Log;
  /** Stops the controller. */
  signal: AbortSignal;
}
