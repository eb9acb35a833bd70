/** Tests that HTTP/2 clients that leave streams or connections unfinished do not occupy them forever. */
import { once } from 'node:events';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createVirtualTimers } from '../../../platform/virtual-timers.ts';
import { CONFIG_MAPS } from '../../hostile-fixture.ts';
import { configMap } from '../../registry/testing.ts';
import { startTestServer, type TestServer } from '../../server-fixture.ts';
import { DEFAULT_LIMITS } from '../bounds/limits.ts';
import { END_HEADERS, END_STREAM, FRAMES, frame, frameClient, get, headerBlock, uint32 } from './frames-fixture.ts';

const NO_ERROR = uint32(0);
const OTHER = '127.0.0.2';

let at: TestServer;
beforeEach(async () => {
  at = await startTestServer();
});
afterEach(() => at[Symbol.asyncDispose]());

const request = (stream: number, path: string, flags = END_HEADERS | END_STREAM): Buffer =>
  frame(FRAMES.headers, flags, stream, headerBlock(get(path)));
const reset = (stream: number): Buffer => frame(FRAMES.reset, 0, stream, NO_ERROR);

test('a reset without an error ends a request whose handler does not read the body', async () => {
  const begun = Promise.withResolvers<AbortSignal>();
  at.backend.get = async ({ signal }) => {
    begun.resolve(signal);
    await once(signal, 'abort');
    return configMap('a', {});
  };
  const client = await frameClient(at);
  client.socket.write(request(1, `${CONFIG_MAPS}/a`, END_HEADERS));
  client.socket.write(frame(FRAMES.data, 0, 1, Buffer.alloc(1)));
  const ended = once(await begun.promise, 'abort');
  client.socket.write(reset(1));
  await ended;
  client.socket.destroy();
});

test('a connection that its client keeps open after GOAWAY is closed after two minutes', async () => {
  const timers = createVirtualTimers();
  await using own = await startTestServer({ timers, limits: { ...DEFAULT_LIMITS, connections: 1 } });
  const client = await frameClient(own, { anonymous: true, allowHalfOpen: true });
  const ended = once(client.socket, 'end');
  client.socket.write(request(1, '/healthz'));
  await ended;
  await expect(frameClient(own, { anonymous: true })).rejects.toThrow();
  timers.advance(120_500);
  const other = await vi.waitFor(() => frameClient(own));
  for (const { socket } of [client, other]) socket.destroy();
});

test('connections to other addresses than loopback leave a quarter of the requests to loopback', async () => {
  await using own = await startTestServer({ limits: { ...DEFAULT_LIMITS, requests: 8 } });
  await own.server.listenOn(OTHER);
  const client = await frameClient(own, { host: OTHER });
  await client.until(FRAMES.settings);
  for (let index = 0; index < 7; index++) client.socket.write(request(2 * index + 1, `${CONFIG_MAPS}?watch=1`));
  expect((await client.until(FRAMES.reset)).stream).toBe(13);
  const local = await frameClient(own);
  local.socket.write(request(1, CONFIG_MAPS));
  await local.until(FRAMES.data, 1);
  for (const { socket } of [client, local]) socket.destroy();
});
