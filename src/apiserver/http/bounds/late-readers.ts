import type { ServerResponse } from 'node:http';
import type { Timers } from '../../../platform/platform.ts';
import { createDeadlines, type Deadlines } from './deadlines.ts';
import { STALLED_MILLIS } from './outgoing.ts';

/**
 * Closes the connection of a client that does not read the last bytes of a response within STALLED_MILLIS, and could otherwise occupy the
 * connection forever. Call begin() after the last write of the response, and end() when the response closes.
 */
export const lateReaders = (timers: Timers): Deadlines<ServerResponse> =>
  createDeadlines(timers, STALLED_MILLIS, (response) => response.destroy());
