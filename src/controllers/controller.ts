/** What every controller is given. */
import type { Client } from '../client/client.ts';
import type { Log, Timers } from '../platform/platform.ts';

export interface ControllerOptions {
  client: Client;
  timers: Timers;
  log: Log;
  /** Ends the controller. */
  signal: AbortSignal;
}
