/** The turns of the requests of one connection. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** The answers of each connection that are not out. */
const answers = new WeakMap<Socket, Set<ServerResponse>>();

/**
 * Resolves when the answers before this one are out: requests that a client sends ahead cost no more than their bytes, and are
 * answered one after the other, as Go's server does it. False where the connection has ended before.
 */
export async function isNext(connection: Socket, response: ServerResponse): Promise<boolean> {
  const waiting = answers.get(connection) ?? new Set();
  if (!answers.has(connection)) {
    answers.set(connection, waiting);
    connection.once('close', () => {
      // Node.js closes only the answer that has the connection.
      for (const each of waiting) if (each.socket === null) each.destroy().emit('close');
    });
  }
  const before = [...waiting].at(-1);
  waiting.add(response);
  response.once('close', () => waiting.delete(response));
  // What follows a request on its connection may end the connection before its turn has come.
  await (before === undefined ? undefined : new Promise<void>((resolve) => before.once('close', () => resolve())));
  return !response.destroyed && !connection.destroyed;
}
