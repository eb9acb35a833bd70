/** The options that every controller takes, and a constant that two controllers share. */
import type { Client } from '../client/client.ts';
import type { Log, Timers } from '../platform/platform.ts';

/**
 * A timer that fires at least this late shows that the machine was suspended. The node's state in the API may then still be
 * the state from before the suspension.
 */
export const SUSPENDED_MILLIS = 10_000;

export interface ControllerOptions {
  client: Client;
  timers: Timers;
  log: Log;
  /** Stops the controller. */
  signal: AbortSignal;
}
