import type { Status } from '../../machinery/meta.ts';
import type { Timers } from '../../platform/platform.ts';
import { type Exchange, startAnswer } from './exchange.ts';

const DISCARD_BYTES = 64 * 1024 * 1024;
const DISCARD_MILLIS = 5_000;

/**
 * Responds immediately, then discards the rest of the body for a while and closes the connection: closing a connection with unread bytes
 * resets the connection, and the client might never get the response.
 */
export async function discardBody(exchange: Exchange, status: Status, timers: Timers): Promise<void> {
  const { request, response } = exchange;
  const body = Buffer.from(`${JSON.stringify(status)}\n`);
  response.setHeader('Connection', 'close');
  startAnswer(exchange, status.code ?? 413, { 'Content-Type': 'application/json', 'Content-Length': body.length });
  response.write(body);
  await new Promise<void>((resolve) => {
    let bytes = 0;
    const timer = timers.at(timers.now() + DISCARD_MILLIS, () => resolve());
    const done = (): void => {
      timer.cancel();
      resolve();
    };
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > DISCARD_BYTES) done();
    });
    request.once('end', done).once('close', done).once('error', done);
    request.resume();
  });
  response.end();
}
