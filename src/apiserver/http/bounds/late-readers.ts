import type { ServerResponse } from 'node:http';
import type { Timers } from '../../../platform/platform.ts';
import { createDeadlines, type Deadlines } from './deadlines.ts';
import { STALLED_MILLIS } from './outgoing.ts';

/**
 * Call begin() after the last write of a response, and end() when the response closes. Without the time limit, a client that does not read
 * could occupy a connection forever.
 */
export const lateReaders = (timers: Timers): Deadlines<ServerResponse> =>
  createDeadlines(timers, STALLED_MILLIS, (response) => response.destroy());
