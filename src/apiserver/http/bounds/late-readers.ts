/** Limits the time in which clients read the last bytes of their responses. */
import type { ServerResponse } from 'node:http';
import type { Timers } from '../../../platform/platform.ts';
import { STALLED_MILLIS } from './outgoing.ts';

/**
 * Closes the connection if the client has not read a complete response within STALLED_MILLIS: its connection would count as in use for as
 * long as the client wants.
 */
export function limitReading(response: ServerResponse, timers: Timers): void {
  if (response.closed || response.destroyed) return;
  const late = timers.at(timers.now() + STALLED_MILLIS, () => response.destroy());
  response.once('close', () => late.cancel());
}
