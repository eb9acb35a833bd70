/** Limits the time in which clients read the last bytes of their responses. */
import type { ServerResponse } from 'node:http';
import type { Timers } from '../../../platform/platform.ts';
import { createDeadlines, type Deadlines } from './deadlines.ts';
import { STALLED_MILLIS } from './outgoing.ts';

/**
 * Returns limits on complete responses, until end() is called when they close. Closes the connection of a client that has not read the response
 * within STALLED_MILLIS: the connection would count as in use for as long as the client wants.
 */
export const lateReaders = (timers: Timers): Deadlines<ServerResponse> =>
  createDeadlines(timers, STALLED_MILLIS, (response) => response.destroy());
