/**
 * A crowd of clients of one user: `node crowd.ts` with a Crowd as JSON on one line of standard input. Each client sends one request after
 * another on a connection of its own. Prints `sent` once every client has sent a request. When standard input ends, prints the number of
 * responses by status code as JSON.
 */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { createInterface } from 'node:readline';

export interface Crowd {
  host: string;
  port: number;
  ca: string;
  cert: string;
  key: string;
  clients: number;
  method: string;
  path: string;
  /** The beginning of a body that never ends; the empty text for no body. */
  endlessBody: string;
}

/** How many clients connect at a time, so that TLS handshakes stay below the server's limit. */
const BATCH = 100;
/** As the Retry-After of the server says. */
const RETRY_MILLIS = 1000;

const lines = createInterface({ input: process.stdin });
const [line] = (await once(lines, 'line')) as [string];
const { clients, method, path, endlessBody, ...address } = JSON.parse(line) as Crowd;
const codes: Record<string, number> = {};
let isOver = false;
const over = once(lines, 'close').then(() => {
  isOver = true;
});

/** Calls `sent` once the connection is established. Resolves to the status code. */
async function ask(agent: Agent, sent: () => void): Promise<number> {
  const headers = endlessBody === '' ? {} : { 'content-length': endlessBody.length + 1 };
  const outgoing = request({ ...address, agent, method, path, headers });
  outgoing
    .on('error', () => undefined)
    .once('socket', (socket) => {
      if (socket.connecting) socket.once('secureConnect', sent);
      else sent();
    });
  if (endlessBody === '') outgoing.end();
  else outgoing.write(endlessBody);
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  response.on('error', () => undefined).resume();
  await once(response, 'close');
  return response.statusCode ?? 0;
}

async function keepAsking(sent: () => void): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  while (!isOver) {
    const code = await ask(agent, sent).catch(() => 'closed');
    sent();
    codes[code] = (codes[code] ?? 0) + 1;
    if (code !== 200) await new Promise((resolve) => setTimeout(resolve, RETRY_MILLIS));
  }
}

for (let begun = 0; begun < clients && !isOver; begun += BATCH) {
  const batch = Array.from({ length: Math.min(BATCH, clients - begun) }, () => Promise.withResolvers<void>());
  for (const { resolve } of batch) void keepAsking(resolve);
  await Promise.all(batch.map(({ promise }) => promise));
}
process.stdout.write('sent\n');
await over;
process.stdout.write(`${JSON.stringify(codes)}\n`, () => process.exit());
