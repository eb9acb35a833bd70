/** Pipelined requests: a client may send several on one connection without waiting for the answers. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Each request that waits takes some kB. Clients that pipeline at all send a few ahead. */
const MAX_WAITING = 100;

/** The requests of one connection. */
interface Line {
  /** The answers that are not complete, in the order of their requests. */
  answers: Set<ServerResponse>;
  /** Resolves when the last one is complete. */
  lastIsComplete: Promise<void>;
}

const lines = new WeakMap<Socket, Line>();

/**
 * Resolves when the answers to the requests before this one are complete. The server handles the requests of a connection one
 * after the other, as Go's net/http does. Resolves with false if the connection has ended meanwhile. A connection on which more
 * than 100 requests wait is ended: the memory that its requests take is bounded.
 */
export async function isNext(connection: Socket, response: ServerResponse): Promise<boolean> {
  const line = lines.get(connection) ?? begin(connection);
  if (line.answers.size > MAX_WAITING) connection.destroy();
  // Node.js emits the requests of the bytes that it has read all the same.
  if (connection.destroyed) return false;
  const before = line.lastIsComplete;
  line.answers.add(response);
  line.lastIsComplete = new Promise((resolve) => {
    response.once('close', () => {
      line.answers.delete(response);
      resolve();
    });
  });
  // Bytes after a request can make Node.js end its connection in the same turn of the event loop.
  await before;
  return !response.destroyed && !connection.destroyed;
}

/** Whether the answer to a request of the connection is not complete. */
export const waitsForAnswer = (connection: Socket): boolean => (lines.get(connection)?.answers.size ?? 0) > 0;

function begin(connection: Socket): Line {
  const line: Line = { answers: new Set(), lastIsComplete: Promise.resolve() };
  lines.set(connection, line);
  connection.once('close', () => {
    // Node.js emits close only for the answer that is being written.
    for (const each of line.answers) if (each.socket === null) each.destroy().emit('close');
  });
  return line;
}
