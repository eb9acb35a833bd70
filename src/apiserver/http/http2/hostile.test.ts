import { once } from 'node:events';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createVirtualTimers } from '../../../platform/virtual-timers.ts';
import { CONFIG_MAPS } from '../../hostile-fixture.ts';
import { configMap, ref } from '../../registry/testing.ts';
import { startTestServer, type TestServer, turns } from '../../server-fixture.ts';
import { DEFAULT_LIMITS } from '../bounds/limits.ts';
import {
  END_HEADERS,
  END_STREAM,
  FRAMES,
  type FrameClient,
  frame,
  frameClient,
  get,
  headerBlock,
  INITIAL_WINDOW_SIZE,
  settings,
  uint32,
} from './frames-fixture.ts';

const MEBIBYTE = 1024 * 1024;
const CANCEL = uint32(8);

let at: TestServer;
beforeEach(async () => {
  at = await startTestServer();
});
afterEach(() => at[Symbol.asyncDispose]());

const request = (stream: number, path: string, flags = END_HEADERS | END_STREAM): Buffer =>
  frame(FRAMES.headers, flags, stream, headerBlock(get(path)));

/**
 * Writes the bytes again and again until the server has ended the connection or `most` bytes are written. Resolves to the largest growth of
 * the process in bytes.
 */
async function flood(client: FrameClient, bytes: Buffer, most: number): Promise<number> {
  const before = process.memoryUsage().rss;
  let grown = 0;
  for (let sent = 0; sent < most && client.socket.writable; sent += bytes.length) {
    if (!client.socket.write(bytes))
      await Promise.race([once(client.socket, 'drain').catch(() => undefined), client.closed]);
    grown = Math.max(grown, process.memoryUsage().rss - before);
  }
  return grown;
}

const repeated = (bytes: Buffer, times: number): Buffer => Buffer.concat(Array.from({ length: times }, () => bytes));

test('a client that resets its streams at once starts only a limited number of requests', async () => {
  const list = vi.spyOn(at.backend, 'list');
  const client = await frameClient(at);
  for (let round = 0; round < 500 && client.socket.writable; round++) {
    const frames = Array.from({ length: 100 }, (_, index) => {
      const stream = 2 * (round * 100 + index) + 1;
      return [request(stream, CONFIG_MAPS), frame(FRAMES.reset, 0, stream, CANCEL)];
    });
    client.socket.write(Buffer.concat(frames.flat()));
    await turns(1);
  }
  await client.closed;
  // nghttp2 allows a burst of resets before it ends the connection.
  expect(list.mock.calls.length).toBeLessThan(2000);
  expect((await at.call('GET', CONFIG_MAPS)).code).toBe(200);
});

test('a client that resets its streams has no more handlers than streams, even if they run long', async () => {
  let running = 0;
  const answered = Promise.withResolvers<void>();
  at.backend.get = async () => {
    running += 1;
    await answered.promise;
    return configMap('a', {});
  };
  const client = await frameClient(at);
  for (let stream = 1; stream < 600; stream += 2) {
    client.socket.write(request(stream, `${CONFIG_MAPS}/a`));
    await turns(2);
    client.socket.write(frame(FRAMES.reset, 0, stream, CANCEL));
  }
  client.socket.write(frame(FRAMES.ping, 0, 0, Buffer.alloc(8)));
  await client.until(FRAMES.ping);
  expect(running).toBe(100);
  answered.resolve();
  client.socket.destroy();
});

test('a client that makes the server reset a stream loses its connection', async () => {
  const client = await frameClient(at);
  client.socket.write(request(1, `${CONFIG_MAPS}?watch=1`));
  await client.until(FRAMES.headers, 1);
  // A window of more than 2^31 - 1 bytes is an error of the stream.
  client.socket.write(frame(FRAMES.windowUpdate, 0, 1, uint32(2 ** 31 - 1)));
  await client.closed;
});

test.each<[string, Buffer, number]>([
  [
    'CONTINUATION frames without an end',
    frame(FRAMES.continuation, 0, 1, headerBlock([['a', 'x'.repeat(1000)]])),
    END_STREAM,
  ],
  ['settings', frame(FRAMES.settings, 0, 0, settings([3, 100])), END_HEADERS],
  ['pings', frame(FRAMES.ping, 0, 0, Buffer.alloc(8)), END_HEADERS],
  ['empty DATA frames', frame(FRAMES.data, 0, 1), END_HEADERS],
  ['priorities', frame(FRAMES.priority, 0, 1, Buffer.alloc(5)), END_HEADERS],
  ['window updates', frame(FRAMES.windowUpdate, 0, 0, uint32(1)), END_HEADERS],
])('a flood of %s takes little memory, and other clients are served', async (_what, bytes, flags) => {
  const client = await frameClient(at);
  client.socket.write(request(1, CONFIG_MAPS, flags));
  // Leave the replies unread, so that they wait in the server.
  client.socket.pause();
  const flooding = flood(client, repeated(bytes, 1000), 32 * MEBIBYTE);
  let [over, longest] = [false, 0];
  void flooding.then(() => (over = true));
  while (!over) {
    const began = process.threadCpuUsage();
    expect((await at.call('GET', CONFIG_MAPS)).code).toBe(200);
    const { user, system } = process.threadCpuUsage(began);
    longest = Math.max(longest, user + system);
  }
  expect(await flooding).toBeLessThan(64 * MEBIBYTE);
  expect(longest).toBeLessThan(1_000_000);
  client.socket.destroy();
});

test.each<[string, [string, string][]]>([
  ['one header of 20 kB', [['a', 'x'.repeat(20_000)]]],
  ['a thousand short headers', Array.from({ length: 1000 }, () => ['a', ''])],
])('a request with %s gets 431, and the connection continues', async (_what, more) => {
  const client = await frameClient(at);
  const block = headerBlock(get(CONFIG_MAPS, ...more));
  const [first, second] = [block.subarray(0, 16_384), block.subarray(16_384)];
  client.socket.write(frame(FRAMES.headers, END_STREAM, 1, first));
  client.socket.write(frame(FRAMES.continuation, END_HEADERS, 1, second));
  // nghttp2 encodes the status as a literal, because its table of headers does not contain 431.
  expect((await client.until(FRAMES.headers, 1)).payload.toString('latin1')).toContain('431');
  client.socket.write(request(3, CONFIG_MAPS));
  await client.until(FRAMES.data, 3);
  client.socket.destroy();
});

test('a header block that repeats a large header of the table is refused without its memory', async () => {
  const before = process.memoryUsage().rss;
  const client = await frameClient(at);
  client.socket.write(
    frame(FRAMES.headers, END_HEADERS | END_STREAM, 1, headerBlock(get(CONFIG_MAPS, ['a', 'x'.repeat(4000)]), true)),
  );
  await client.until(FRAMES.headers, 1);
  // Index 62 is the newest field of the table.
  const bomb = Buffer.concat([headerBlock(get(CONFIG_MAPS)), Buffer.alloc(16_000, 0x80 | 62)]);
  for (let stream = 3; stream < 203 && client.socket.writable; stream += 2) {
    client.socket.write(frame(FRAMES.headers, END_HEADERS | END_STREAM, stream, bomb));
  }
  await Promise.race([client.until(FRAMES.reset, 201), client.until(FRAMES.headers, 201), client.closed]);
  expect(process.memoryUsage().rss - before).toBeLessThan(64 * MEBIBYTE);
  expect((await at.call('GET', CONFIG_MAPS)).code).toBe(200);
  client.socket.destroy();
});

test('responses that the client gives no window take a limited amount of memory, and are reset after a minute', async () => {
  const timers = createVirtualTimers();
  await using own = await startTestServer({ timers });
  const data = { text: 'x'.repeat(100_000) };
  await own.api.create(ref('configmaps'), 'default', configMap('a', data));
  const before = process.memoryUsage().rss;
  const clients = [];
  for (let index = 0; index < 20; index++) {
    const client = await frameClient(own, { settings: settings([INITIAL_WINDOW_SIZE, 0]) });
    const requests = Array.from({ length: 100 }, (_, each) => request(2 * each + 1, `${CONFIG_MAPS}/a`));
    client.socket.write(Buffer.concat(requests));
    clients.push(client);
  }
  // 2000 responses of 100 kB wait. The budget for waiting output has 64 MiB.
  await Promise.all(clients.map((client) => client.until(FRAMES.headers, 199)));
  expect(process.memoryUsage().rss - before).toBeLessThan(320 * MEBIBYTE);
  expect((await own.call('GET', CONFIG_MAPS)).code).toBe(200);
  timers.advance(60_000);
  await Promise.all(clients.map((client) => client.until(FRAMES.reset, 199)));
  for (const { socket } of clients) socket.destroy();
});

test('responses that wait when their streams are reset do not use up the connection', async () => {
  await at.api.create(ref('configmaps'), 'default', configMap('a', { text: 'x'.repeat(120_000) }));
  const before = process.memoryUsage().rss;
  const client = await frameClient(at, { settings: settings([INITIAL_WINDOW_SIZE, 0]) });
  for (let stream = 1; stream < 800; stream += 2) {
    client.socket.write(request(stream, `${CONFIG_MAPS}/a`));
    await client.until(FRAMES.headers, stream);
    client.socket.write(frame(FRAMES.reset, 0, stream, CANCEL));
  }
  expect(process.memoryUsage().rss - before).toBeLessThan(64 * MEBIBYTE);
  client.socket.destroy();
});

test('requests beyond the limit of a connection, or of all connections together, are refused', async () => {
  await using own = await startTestServer({ limits: { ...DEFAULT_LIMITS, requests: 150 } });
  const clients = [await frameClient(own), await frameClient(own)];
  for (const client of clients) {
    // Like a client that counts its streams, wait until the settings with the limit have arrived before sending requests.
    await client.until(FRAMES.settings);
    for (let index = 0; index < 101; index++) client.socket.write(request(2 * index + 1, `${CONFIG_MAPS}?watch=1`));
    await client.until(FRAMES.reset);
  }
  const resets = clients.map(({ frames }) => frames.filter(({ type }) => type === FRAMES.reset));
  expect(resets[0]?.[0]?.stream).toBe(201);
  expect(resets[1]?.[0]?.stream).toBe(101);
  // The error code is REFUSED_STREAM (7): the client may send the request again.
  expect(resets.flat().every(({ payload }) => payload.readUInt32BE() === 7)).toBe(true);
  for (const { socket } of clients) socket.destroy();
});

test('beyond the limit on connections, those without requests are closed, but not those with requests or new ones', async () => {
  const timers = createVirtualTimers();
  await using own = await startTestServer({ timers, limits: { ...DEFAULT_LIMITS, connections: 4 } });
  const [silent, idle, busy] = [await frameClient(own), await frameClient(own), await frameClient(own)];
  idle.socket.write(request(1, CONFIG_MAPS));
  busy.socket.write(request(1, `${CONFIG_MAPS}?watch=1`));
  await Promise.all([silent.until(FRAMES.settings), idle.until(FRAMES.data, 1), busy.until(FRAMES.headers, 1)]);
  timers.advance(1000);
  const fresh = await frameClient(own);
  await fresh.until(FRAMES.settings);
  await expect(frameClient(own)).rejects.toThrow();
  await Promise.all([silent.until(FRAMES.goAway), idle.until(FRAMES.goAway)]);
  fresh.socket.write(request(1, CONFIG_MAPS));
  await fresh.until(FRAMES.data, 1);
  expect(busy.frames.some(({ type }) => type === FRAMES.goAway)).toBe(false);
  for (const { socket } of [silent, idle, busy, fresh]) socket.destroy();
});

test('a connection without requests is closed after two minutes, even if its client sends pings', async () => {
  const timers = createVirtualTimers();
  await using own = await startTestServer({ timers });
  const client = await frameClient(own);
  client.socket.write(request(1, CONFIG_MAPS));
  await client.until(FRAMES.data, 1);
  await turns(5);
  timers.advance(119_000);
  client.socket.write(frame(FRAMES.ping, 0, 0, Buffer.alloc(8)));
  await client.until(FRAMES.ping);
  timers.advance(1_001);
  await client.until(FRAMES.goAway);
  timers.advance(500);
  await client.closed;
});

test('the connection of a client without credentials ends with the response', async () => {
  const client = await frameClient(at, { anonymous: true });
  client.socket.write(request(1, '/healthz'));
  await client.until(FRAMES.goAway);
  await client.closed;
  expect(client.frames.some(({ type, stream }) => type === FRAMES.data && stream === 1)).toBe(true);
});

test.each(['__proto__', 'constructor', 'tostring', 'hasownproperty'])('a header named %s is harmless', async (name) => {
  const client = await frameClient(at);
  client.socket.write(
    frame(FRAMES.headers, END_HEADERS | END_STREAM, 1, headerBlock(get(CONFIG_MAPS, [name, '1'], [name, '2']))),
  );
  await client.until(FRAMES.data, 1);
  client.socket.destroy();
});

test.each<[string, [string, string][]]>([
  [
    'CONNECT',
    [
      [':method', 'CONNECT'],
      [':authority', 'localhost'],
    ],
  ],
  [
    'a request without a path',
    [
      [':method', 'GET'],
      [':scheme', 'https'],
      [':authority', 'localhost'],
    ],
  ],
  ['a request with Transfer-Encoding', get(CONFIG_MAPS, ['transfer-encoding', 'chunked'])],
  ['a request with an upper-case header', get(CONFIG_MAPS, ['Accept', '*/*'])],
  ['a request with an unknown expectation', get(CONFIG_MAPS, ['expect', 'miracles'])],
])('%s is refused', async (_what, fields) => {
  const list = vi.spyOn(at.backend, 'list');
  const client = await frameClient(at);
  client.socket.write(frame(FRAMES.headers, END_HEADERS | END_STREAM, 1, headerBlock(fields)));
  await Promise.race([client.until(FRAMES.reset, 1), client.until(FRAMES.headers, 1), client.closed]);
  expect(list).not.toHaveBeenCalled();
  client.socket.destroy();
});
