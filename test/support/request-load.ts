/**
 * A constant load: `node request-load.ts URL fresh|kept`. Each of WORKERS clients sends one request after another, with `fresh` each on a
 * new connection, with `kept` on one connection as long as the server keeps it. For each response, the program prints the name of the
 * server, which the response contains; for each request without the right response, a line that begins with `failed`. When its standard
 * input ends, the program waits for the last responses and ends.
 */
import { Agent, get } from 'node:http';
import { text } from 'node:stream/consumers';

const [url = '', connections] = process.argv.slice(2);
const WORKERS = 4;
const PATIENCE_MILLIS = 30_000;

let isOver = false;
process.stdin.once('end', () => {
  isOver = true;
});
process.stdin.resume();

const ask = (agent: Agent): Promise<string> =>
  new Promise((resolve, reject) => {
    const request = get(url, { agent, timeout: PATIENCE_MILLIS }, (response) => {
      text(response).then(
        (body) => (response.statusCode === 200 ? resolve(body) : reject(new Error(`status ${response.statusCode}`))),
        reject,
      );
    });
    request.once('timeout', () => request.destroy(new Error('no response'))).once('error', reject);
  });

async function work(): Promise<void> {
  const agent = new Agent({ keepAlive: connections === 'kept', maxSockets: 1 });
  while (!isOver) {
    const line = await ask(agent).catch((error: Error) => `failed: ${error.message}`);
    process.stdout.write(`${line}\n`);
  }
  agent.destroy();
}

await Promise.all(Array.from({ length: WORKERS }, work));
