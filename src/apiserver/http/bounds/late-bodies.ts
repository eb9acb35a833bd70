/** Limits the time in which the bodies of requests arrive. */
import type { IncomingMessage } from 'node:http';
import type { Timers } from '../../../platform/platform.ts';
import { createDeadlines, type Deadlines } from './deadlines.ts';

/** The default of Node.js for whole requests. */
const BODY_MILLIS = 300_000;

/**
 * Returns limits on the bodies of requests, until end() is called or the body has arrived. Closes the connection of a body that has not arrived
 * within BODY_MILLIS. The requestTimeout of Node.js would also end the bodies that the server forwards to Pods, which may take as long as
 * they need.
 */
export function lateBodies(timers: Timers): Deadlines<IncomingMessage> {
  const deadlines = createDeadlines<IncomingMessage>(timers, BODY_MILLIS, (request) => {
    if (!request.complete) request.socket.destroy();
  });
  return {
    ...deadlines,
    begin(request) {
      if (hasArrived(request)) return;
      deadlines.begin(request);
      request.once('close', () => deadlines.end(request));
    },
  };
}

/**
 * Whether the whole body has arrived. When the handler of a request begins, Node.js has often read the body, but has not yet seen that it is
 * complete.
 */
export const hasArrived = (request: IncomingMessage): boolean =>
  request.complete || Number(request.headers['content-length'] ?? Number.NaN) === request.readableLength;
