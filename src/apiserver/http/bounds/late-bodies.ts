/** Limits the time in which the bodies of requests arrive. */
import type { IncomingMessage } from 'node:http';
import type { Timers } from '../../../platform/platform.ts';

/** The default of Node.js for whole requests. */
const BODY_MILLIS = 300_000;

/**
 * Closes the connection if the body of the request has not arrived within BODY_MILLIS. Returns a function that removes the limit. The
 * requestTimeout of Node.js would also end the bodies that the server forwards to Pods, which may take as long as they need.
 */
export function limitBody(request: IncomingMessage, timers: Timers): () => void {
  const { headers } = request;
  if (headers['content-length'] === undefined && headers['transfer-encoding'] === undefined) return () => undefined;
  const late = timers.at(timers.now() + BODY_MILLIS, () => {
    if (!request.complete) request.socket.destroy();
  });
  const remove = (): void => late.cancel();
  request.once('close', remove);
  return remove;
}
