/** Tests behavior that only HTTP/2 has. The project `http2` runs the other tests of the server with HTTP/2. */
import { once } from 'node:events';
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2';
import { connect as connectTls } from 'node:tls';
import { expect, test, vi } from 'vitest';
import { PODS } from '../../../api/resources.ts';
import type { KubeObject } from '../../../machinery/meta.ts';
import { createVirtualTimers } from '../../../platform/virtual-timers.ts';
import { CONFIG_MAPS } from '../../hostile-fixture.ts';
import { noNodes, startTestServer, type TestServer } from '../../server-fixture.ts';
import { plainHeaders } from './request.ts';

const open = ({ server, pki }: TestServer, settings = {}): ClientHttp2Session => {
  const { certificate: cert, key } = pki.admin;
  // 1000 MB instead of 10 MB, because the client of Node.js continues to count the unsent output of streams that were reset.
  const limits = { maxSessionMemory: 1000 };
  const session = connect(`https://${server.host}:${server.port}`, {
    ca: pki.caCertificate,
    cert,
    key,
    settings,
    ...limits,
  });
  return session.on('error', () => undefined);
};

const begin = (session: ClientHttp2Session, path: string, headers = {}): ClientHttp2Stream =>
  session.request({ ':path': path, ...headers }).on('error', () => undefined);

async function call(session: ClientHttp2Session, path: string, headers = {}, body?: string) {
  const stream = session.request({ ':path': path, ...headers }, { endStream: body === undefined });
  stream.on('error', () => undefined);
  if (body !== undefined) stream.end(body);
  const [received] = await once(stream, 'response');
  stream.setEncoding('utf8');
  let text = '';
  for await (const chunk of stream) text += chunk;
  return { code: received[':status'] as number, text };
}

test.each<[boolean, string[] | undefined, string | false]>([
  [true, ['h2', 'http/1.1'], 'h2'],
  [true, ['h2'], 'h2'],
  [true, ['http/1.1', 'h2'], 'h2'],
  [true, ['http/1.1'], 'http/1.1'],
  [true, undefined, false],
  [false, ['h2', 'http/1.1'], 'http/1.1'],
])('with the option http2 %j, a client that offers %j gets %j', async (http2, offered, expected) => {
  await using at = await startTestServer({ http2 });
  const { host, port } = at.server;
  const ca = at.pki.caCertificate;
  const socket = connectTls({ host, port, ca, ...(offered && { ALPNProtocols: offered }) });
  await once(socket, 'secureConnect');
  expect(socket.alpnProtocol).toBe(expected);
  if (expected !== 'h2') {
    socket.write('GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n');
    expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1.1 200/);
  }
  socket.destroy();
});

test('requests, and a watch that sees their changes, share a connection', async () => {
  await using at = await startTestServer();
  const session = open(at);
  const watch = begin(session, `${CONFIG_MAPS}?watch=1`).setEncoding('utf8');
  await once(watch, 'response');
  const event = once(watch, 'data');
  const object = { metadata: { name: 'a' }, data: { large: 'x'.repeat(900_000) } };
  const type = { 'content-type': 'application/json' };
  expect((await call(session, CONFIG_MAPS, { ':method': 'POST', ...type }, JSON.stringify(object))).code).toBe(201);
  expect(String((await event)[0])).toContain('ADDED');
  const gets = await Promise.all(Array.from({ length: 120 }, () => call(session, `${CONFIG_MAPS}/a`)));
  expect(gets.every(({ code, text }) => code === 200 && JSON.parse(text).data.large.length === 900_000)).toBe(true);
  expect(at.errors).toEqual([]);
  session.destroy();
});

test.each(['NGHTTP2_NO_ERROR', 'NGHTTP2_CANCEL', 'NGHTTP2_REFUSED_STREAM'] as const)(
  'a watch ends when its client resets the stream with %s, and the connection continues',
  async (code) => {
    await using at = await startTestServer();
    const watches = vi.spyOn(at.backend, 'watch');
    const session = open(at);
    const watch = begin(session, `${CONFIG_MAPS}?watch=1`);
    await once(watch, 'response');
    watch.close(constants[code]);
    await watches.mock.results[0]?.value;
    expect((await call(session, CONFIG_MAPS)).code).toBe(200);
    session.destroy();
  },
);

test('a client that sends a refused body gets the response before it has sent the rest, and the connection continues', async () => {
  await using at = await startTestServer();
  const session = open(at);
  const type = { ':method': 'POST', 'content-type': 'application/json' };
  const upload = session.request({ ':path': CONFIG_MAPS, ...type }, { endStream: false });
  upload.on('error', () => undefined).write('x'.repeat(4_000_000));
  const [received] = await once(upload, 'response');
  expect(received[':status']).toBe(413);
  await once(upload.resume(), 'close');
  expect(upload.rstCode).toBe(constants.NGHTTP2_NO_ERROR);
  expect((await call(session, CONFIG_MAPS)).code).toBe(200);
  session.destroy();
});

test.each<[string, number, object, number]>([
  ['/api/v1/nothing', 404, {}, 1],
  ['/api/v1/nothing', 404, {}, 100_000],
  [CONFIG_MAPS, 415, { 'content-type': 'a/b' }, 100_000],
  [CONFIG_MAPS, 417, { expect: 'miracles' }, 100_000],
  [CONFIG_MAPS, 431, { a: 'x'.repeat(20_000) }, 100_000],
])('three hundred bodies for %s that get %j leave no stream open', async (path, code, more, bytes) => {
  await using at = await startTestServer();
  const session = open(at);
  const type = { ':method': 'POST', 'content-type': 'application/json' };
  for (let index = 0; index < 300; index++) {
    expect((await call(session, path, { ...type, ...more }, 'x'.repeat(bytes))).code).toBe(code);
  }
  expect((await call(session, CONFIG_MAPS)).code).toBe(200);
  session.destroy();
});

test('when the server closes, watches end, requests in progress get their response, and then the connection ends', async () => {
  const at = await startTestServer();
  const received = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<void>();
  at.backend.get = async () => {
    received.resolve();
    await answered.promise;
    return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'late' } };
  };
  const session = open(at);
  const watch = begin(session, `${CONFIG_MAPS}?watch=1`);
  await once(watch, 'response');
  const late = call(session, `${CONFIG_MAPS}/late`);
  await received.promise;
  const [ended, goAway, closed] = [once(watch.resume(), 'end'), once(session, 'goaway'), once(session, 'close')];
  const over = at.server.close();
  await ended;
  expect(watch.rstCode).toBe(constants.NGHTTP2_NO_ERROR);
  expect((await goAway)[0]).toBe(constants.NGHTTP2_NO_ERROR);
  answered.resolve();
  expect((await late).code).toBe(200);
  const began = performance.now();
  await Promise.all([over, closed]);
  // close() destroys open connections after CLOSE_GRACE_MILLIS, 5 s.
  expect(performance.now() - began).toBeLessThan(3_000);
  await at[Symbol.asyncDispose]();
});

test('HEAD and 204 have no body, and 100 Continue is sent if the client expects it', async () => {
  await using at = await startTestServer();
  const session = open(at);
  expect((await call(session, '/healthz', { ':method': 'HEAD' })).text).toBe('');
  const create = session.request(
    { ':path': CONFIG_MAPS, ':method': 'POST', 'content-type': 'application/json', expect: '100-continue' },
    { endStream: false },
  );
  await once(create, 'continue');
  create.end('{"metadata":{"name":"a"}}');
  const [received] = await once(create, 'response');
  expect(received[':status']).toBe(201);
  session.destroy();
});

test('the headers of a request become those of HTTP/1.1', () => {
  const raw = [
    ':method',
    'GET',
    ':authority',
    'a:1',
    'host',
    'b',
    'cookie',
    'x=1',
    'cookie',
    'y=2',
    'n',
    '1',
    'n',
    '2',
  ];
  const headers = { ':method': 'GET', ':authority': 'a:1', host: 'b', cookie: 'x=1; y=2', n: '1, 2' };
  expect(plainHeaders(headers, raw, true)).toEqual({
    raw: ['n', '1', 'n', '2', 'host', 'a:1', 'cookie', 'x=1; y=2', 'transfer-encoding', 'chunked'],
    joined: { n: '1, 2', host: 'a:1', cookie: 'x=1; y=2', 'transfer-encoding': 'chunked' },
    distinct: { n: ['1', '2'], host: ['a:1'], cookie: ['x=1; y=2'], 'transfer-encoding': ['chunked'] },
  });
  expect(plainHeaders({ 'content-length': '1' }, ['content-length', '1'], true).raw).toEqual(['content-length', '1']);
});

test.each([
  ['/api/v1/namespaces/default/pods/p/log', true],
  ['/api/v1/namespaces/default/pods/p', false],
])('whether a client may read the last bytes of %s after more than a minute: %j', async (path, mayPause) => {
  const timers = createVirtualTimers();
  const nodes = {
    ...noNodes,
    async *logs() {
      yield Buffer.from('the last bytes');
    },
  };
  await using at = await startTestServer({ timers, nodes });
  const spec = { nodeName: 'node-1', containers: [{ name: 'a', image: 'busybox' }] };
  const metadata = { name: 'p', namespace: 'default' };
  await at.api.set(PODS, { apiVersion: 'v1', kind: 'Pod', metadata, spec } as KubeObject);
  // The server may send no byte of a body until the client changes the size of the window.
  const session = open(at, { initialWindowSize: 0 });
  const stream = begin(session, path).setEncoding('utf8');
  await once(stream, 'response');
  await at.call('GET', '/healthz');
  timers.advance(61_000);
  await at.call('GET', '/healthz');
  session.settings({ initialWindowSize: 65_535 });
  let text = '';
  const read = async (): Promise<void> => {
    for await (const chunk of stream) text += chunk;
  };
  await read().catch(() => undefined);
  expect(text !== '').toBe(mayPause);
  session.destroy();
});
