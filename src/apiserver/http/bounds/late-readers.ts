/** Limits the time in which clients read the last bytes of their responses. */
import type { ServerResponse } from 'node:http';
import type { Timers } from '../../../platform/platform.ts';
import { createDeadlines, type Deadlines } from './deadlines.ts';
import { STALLED_MILLIS } from './outgoing.ts';

/**
 * Returns the deadlines for complete responses: call begin() when the server has written a response, and end() when the response closes.
 * Closes the connection of a client that has not read the response after STALLED_MILLIS. Otherwise, a client that does not read could
 * occupy a connection forever.
 */
export const lateReaders = (timers: Timers): Deadlines<ServerResponse> =>
  createDeadlines(timers, STALLED_MILLIS, (response) => response.destroy());
