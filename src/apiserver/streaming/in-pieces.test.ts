import { PassThrough, Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { expect, test } from 'vitest';
import { inPieces } from './in-pieces.ts';
import { ping } from './spdy/frames.ts';
import { createSpdyRelay } from './spdy/spdy-relay.ts';

test('a message with many small frames is read no further until the runtime takes more', async () => {
  let written = 0;
  const firstIsTaken = Promise.withResolvers<void>();
  const runtime = new Writable({
    write(chunk, _encoding, done) {
      written += (chunk as Buffer).length;
      firstIsTaken.promise.then(() => done());
    },
  });
  const waits = new Promise<void>((resolve) => {
    runtime.on('newListener', (name) => name === 'drain' && resolve());
  });
  const { fromClient } = createSpdyRelay(new PassThrough(), runtime, { types: ['error', 'data'], once: false });
  const message = Buffer.concat(Array.from({ length: 20_000 }, () => ping(1)));
  const taken = inPieces(fromClient, runtime)(message);
  await Promise.race([waits, taken]);
  expect(runtime.writableLength).toBeLessThan(160 * 1024);
  firstIsTaken.resolve();
  await taken;
  runtime.end();
  await finished(runtime);
  expect(written).toBe(message.length);
});

test('no piece is read after one that is refused', async () => {
  const taken: number[] = [];
  const take = async (bytes: Uint8Array): Promise<void> => {
    taken.push(bytes.length);
    if (taken.length === 2) throw new Error('not this one');
  };
  await expect(inPieces(take, new PassThrough())(Buffer.alloc(200_000))).rejects.toThrow('not this one');
  expect(taken).toEqual([65_536, 65_536]);
});
