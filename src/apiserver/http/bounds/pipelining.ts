/** Orders and limits pipelined requests: a client may send several requests on one connection without waiting for the responses. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * The limit on waiting requests per connection. Each request takes a few kB of memory. Clients that pipeline send only a few requests
 * ahead.
 */
const MAX_WAITING = 100;

interface Line {
  answers: Set<ServerResponse>;
  /** The response to the newest request, whether complete or not. */
  newest?: ServerResponse;
}

const lines = new WeakMap<Socket, Line>();

/**
 * Resolves to true when the responses to all earlier requests on the connection are complete: the server handles the requests of a
 * connection one after another, as Go's net/http does. Resolves to false if the connection has ended by then. Ends a connection on which
 * more than MAX_WAITING requests wait.
 */
export async function isNext(connection: Socket, response: ServerResponse): Promise<boolean> {
  const line = lines.get(connection) ?? begin(connection);
  if (line.answers.size > MAX_WAITING) connection.destroy();
  // After the end of a connection, Node.js still emits the requests in the bytes that it has already read.
  if (connection.destroyed) return false;
  const before = untilLastIsComplete(line);
  line.answers.add(response);
  line.newest = response;
  response.on('close', () => line.answers.delete(response));
  // Check the connection after this await even for the first request: invalid bytes after the request can make Node.js end the connection
  // in the same turn of the event loop.
  await before;
  return !response.destroyed && !connection.destroyed;
}

export const isHandling = (connection: Socket): boolean => (lines.get(connection)?.answers.size ?? 0) > 0;

/** Whether the body of the newest request has not arrived completely, and its response is not complete. */
export function isReceiving(connection: Socket): boolean {
  const { answers, newest } = lines.get(connection) ?? {};
  return newest !== undefined && answers?.has(newest) === true && !newest.req.complete;
}

/**
 * Resolves when the responses to all requests on the connection are complete: to true if one more response may be written, to false if the
 * connection has ended, or ends with the last of these responses.
 */
export async function isFree(connection: Socket): Promise<boolean> {
  const line = lines.get(connection);
  if (line !== undefined) await untilLastIsComplete(line);
  const closes = line?.newest?.shouldKeepAlive === false || line?.newest?.getHeader('connection') === 'close';
  return connection.writable && !closes;
}

/** Resolves when the newest response is complete or closed. Returns undefined if it already is. */
function untilLastIsComplete({ answers, newest }: Line): Promise<void> | undefined {
  if (newest === undefined || !answers.has(newest)) return undefined;
  return new Promise((resolve) => newest.once('close', () => resolve()));
}

function begin(connection: Socket): Line {
  const line: Line = { answers: new Set() };
  lines.set(connection, line);
  connection.once('close', () => {
    // Node.js emits close only for the response that is being written, so emit it for the waiting responses.
    for (const each of line.answers) if (each.socket === null) each.destroy().emit('close');
  });
  return line;
}
