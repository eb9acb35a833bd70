import type { IncomingMessage } from 'node:http';
import type { Timers } from '../../../platform/platform.ts';
import { createDeadlines, type Deadlines } from './deadlines.ts';

/** The time limit for a body. It equals the default limit of Node.js for whole requests. */
const BODY_MILLIS = 300_000;

/**
 * Closes the connection of a request whose body has not arrived in time. The requestTimeout of Node.js would also end the bodies that the
 * proxies of Pods, Services and Nodes forward, which may take as long as they need.
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
 * Whether the whole body has arrived. When the handler of a request begins, Node.js has often read the body, but may not have set
 * `complete` yet.
 */
export const hasArrived = (request: IncomingMessage): boolean =>
  request.complete || Number(request.headers['content-length'] ?? Number.NaN) === request.readableLength;
