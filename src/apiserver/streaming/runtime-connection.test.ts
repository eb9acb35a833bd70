import { once } from 'node:events';
import { expect, test } from 'vitest';
import { turns } from '../server-fixture.ts';
import { connectToRuntime, spdyUpgrade } from './runtime-connection.ts';
import { startRuntime } from './runtime-fixture.ts';

test('data that the runtime sent before it closed is read despite failed writes', async () => {
  await using runtime = await startRuntime();
  const { socket } = await connectToRuntime(runtime.url, spdyUpgrade([]), new AbortController().signal);
  const peer = await runtime.next();
  const output = Buffer.alloc(100_000, 'last words ');
  peer.socket.end(output);
  peer.socket.destroySoon();
  await peer.closed;
  // The peer responds to the first write with a reset, so the next writes fail.
  for (let count = 0; count < 5; count++) await new Promise<void>((resolve) => socket.write('late', () => resolve()));
  const pieces: Buffer[] = [];
  socket.on('data', (piece) => pieces.push(piece));
  await once(socket, 'close');
  expect(Buffer.concat(pieces).equals(output)).toBe(true);
});

test('a reset by the runtime does not discard earlier data, however slowly that data is read', async () => {
  await using runtime = await startRuntime();
  const { socket } = await connectToRuntime(runtime.url, spdyUpgrade([]), new AbortController().signal);
  const peer = await runtime.next();
  const pieces = socket[Symbol.asyncIterator]();
  peer.socket.write('first');
  expect(String((await pieces.next()).value)).toBe('first');
  peer.socket.write('second');
  await turns(100);
  peer.socket.resetAndDestroy();
  await turns(100);
  expect(String((await pieces.next()).value)).toBe('second');
  await expect(pieces.next()).rejects.toThrow('ECONNRESET');
});

test('connecting to the runtime can be aborted', async () => {
  await using runtime = await startRuntime();
  const abort = new AbortController();
  const connecting = connectToRuntime(runtime.url, spdyUpgrade([]), abort.signal);
  abort.abort(new Error('given up'));
  await expect(connecting).rejects.toThrow('given up');
  await expect(connectToRuntime(runtime.url, spdyUpgrade([]), abort.signal)).rejects.toThrow('given up');
});
