/** Pipelined requests: a client may send several on one connection without waiting for the answers. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** The answers of each connection that are not complete, in the order of their requests. */
const answers = new WeakMap<Socket, Set<ServerResponse>>();

/**
 * Resolves when the answers to the requests before this one are complete. The server handles the requests of a connection one
 * after the other, as Go's net/http does, so a pipelined request takes no more memory than its bytes. Resolves with false if the
 * connection has ended meanwhile.
 */
export async function isNext(connection: Socket, response: ServerResponse): Promise<boolean> {
  const waiting = answers.get(connection) ?? new Set();
  if (!answers.has(connection)) {
    answers.set(connection, waiting);
    connection.once('close', () => {
      // Node.js emits close only for the answer that is being written.
      for (const each of waiting) if (each.socket === null) each.destroy().emit('close');
    });
  }
  const before = [...waiting].at(-1);
  waiting.add(response);
  response.once('close', () => waiting.delete(response));
  // Bytes after a request can make Node.js end its connection in the same turn of the event loop.
  await (before === undefined ? undefined : new Promise<void>((resolve) => before.once('close', () => resolve())));
  return !response.destroyed && !connection.destroyed;
}
