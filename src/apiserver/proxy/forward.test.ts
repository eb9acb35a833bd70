import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterEach, expect, test } from 'vitest';
import { ApiError } from '../../machinery/status.ts';
import { systemTimers } from '../../platform/node-js.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { outgoingBudget } from '../http/bounds/outgoing.ts';
import { createExchange } from '../http/exchange.ts';
import { loadOrCreatePki } from '../pki/pki.ts';
import { answerOn, takeable, type UpgradingConnection } from '../streaming/upgrading-connection.ts';
import { forward } from './forward.ts';

const PREFIX = '/proxy';
const timers = systemTimers();
const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

async function listen(serve: (request: IncomingMessage, response: ServerResponse) => void) {
  const server = createServer(serve).listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(() => void server.close().closeAllConnections());
  return { server, port: (server.address() as AddressInfo).port };
}

/** Resolves to the port of a proxy to `port`, which forwards the path after PREFIX of each request. */
async function proxyTo(port: number, scheme: 'http' | 'https' = 'http'): Promise<number> {
  const budget = outgoingBudget({ timers, log: silentLog });
  const serve = (incoming: IncomingMessage, response: ServerResponse, upgrading?: UpgradingConnection): void => {
    const ended = new AbortController();
    let taken = false;
    (upgrading?.socket ?? response).once('close', () => taken || ended.abort());
    const exchange = createExchange(incoming, response, {
      signal: ended.signal,
      endWithServer: () => undefined,
      outgoing: budget.open(response, '/'),
      upgrade: upgrading && takeable(response, upgrading, () => (taken = true)),
    });
    const rest = (incoming.url ?? '').slice(PREFIX.length);
    const location = { scheme, ip: '127.0.0.1', port: String(port) };
    forward({ exchange, timers, location, prefix: PREFIX, rest }).catch((error: unknown) => {
      response.statusCode = error instanceof ApiError ? error.code : 500;
      response.end((error as Error).message);
    });
  };
  const proxy = await listen(serve);
  proxy.server.on('upgrade', (incoming, connection, head) => {
    const socket = connection as Socket;
    serve(incoming, answerOn(incoming, socket), { socket, head });
  });
  return proxy.port;
}

function open(port: number, path: string, given: { method?: string; headers?: Record<string, string> } = {}) {
  const sent = request({ host: '127.0.0.1', port, path: `${PREFIX}${path}`, agent: false, ...given });
  sent.on('error', () => undefined);
  return { sent, response: once(sent, 'response').then(([response]) => response as IncomingMessage) };
}

const bytesOf = async (response: IncomingMessage): Promise<Buffer> => Buffer.concat(await response.toArray());

test.each(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])(
  '%s passes with its query, body and headers',
  async (method) => {
    const seen: {
      url?: string | undefined;
      method?: string | undefined;
      headers?: IncomingHttpHeaders;
      body?: string;
    } = {};
    const { port } = await listen(async (incoming, response) => {
      const { url, headers } = incoming;
      Object.assign(seen, { url, headers, method: incoming.method, body: (await bytesOf(incoming)).toString() });
      response.writeHead(418, { 'X-Own': ['a', 'b'], 'Keep-Alive': 'timeout=9', 'Access-Control-Allow-Origin': '*' });
      response.end('teapot');
    });
    const headers = {
      Cookie: 'c=1',
      Authorization: 'Bearer secret',
      'X-Remote-User': 'root',
      Connection: 'X-Hop',
      'X-Hop': '1',
      'Transfer-Encoding': 'chunked',
      'X-Forwarded-For': '192.0.2.1',
    };
    const { sent, response } = open(await proxyTo(port), '/a%2Fb?q=%20x&q=2', { method, headers });
    sent.write('one ');
    sent.end('two');
    const answer = await response;
    expect((await bytesOf(answer)).toString()).toBe('teapot');
    expect(answer.statusCode).toBe(418);
    expect(answer.headers).toMatchObject({ 'x-own': 'a, b' });
    expect(Object.keys(answer.headers)).not.toContain('access-control-allow-origin');
    expect(seen).toMatchObject({ url: '/a%2Fb?q=%20x&q=2', method, body: 'one two' });
    expect(seen.headers).toMatchObject({
      cookie: 'c=1',
      host: sent.getHeader('host'),
      'x-forwarded-for': '192.0.2.1, 127.0.0.1',
      'x-forwarded-uri': '/proxy/a%2Fb',
    });
    for (const name of ['authorization', 'x-remote-user', 'x-hop']) expect(seen.headers).not.toHaveProperty(name);
  },
);

test('HEAD returns the headers of the server without a body', async () => {
  const { port } = await listen((_incoming, response) => response.writeHead(200, { 'Content-Length': 77 }).end());
  const { sent, response } = open(await proxyTo(port), '/', { method: 'HEAD' });
  sent.end();
  expect((await response).headers['content-length']).toBe('77');
});

test('redirects and the links of a compressed page lead through the proxy again', async () => {
  const page = gzipSync('<a href="/x">x</a>');
  const { port } = await listen((incoming, response) => {
    if (incoming.url === '/old') response.writeHead(302, { Location: '/new/?a=b' }).end();
    else response.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8', 'Content-Encoding': 'gzip' }).end(page);
  });
  const proxy = await proxyTo(port);
  const redirected = open(proxy, '/old');
  redirected.sent.end();
  expect((await redirected.response).headers.location).toBe('/proxy/new/?a=b');
  const read = open(proxy, '/');
  read.sent.end();
  expect(gunzipSync(await bytesOf(await read.response)).toString()).toBe('<a href="/proxy/x">x</a>');
});

test('both bodies pass while they are sent', async () => {
  const { port } = await listen((incoming, response) => {
    response.flushHeaders();
    incoming.pipe(response);
  });
  const { sent, response } = open(await proxyTo(port), '/', { method: 'POST' });
  sent.write('first');
  const answer = await response;
  expect(String((await once(answer, 'data'))[0])).toBe('first');
  sent.end('second');
  expect(String((await once(answer, 'data'))[0])).toBe('second');
});

test('a client that disconnects ends the request to the server', async () => {
  let ended: Promise<unknown> | undefined;
  const { port } = await listen((incoming, response) => {
    ended = once(incoming.socket, 'close');
    response.write('endless');
  });
  const { sent, response } = open(await proxyTo(port), '/');
  sent.end();
  await once(await response, 'data');
  sent.destroy();
  await ended;
});

test('a response that breaks off breaks the connection of the client', async () => {
  const { port } = await listen((incoming, response) => {
    response.writeHead(200, { 'Content-Length': 100 });
    response.write('part', () => incoming.socket.destroy());
  });
  const { sent, response } = open(await proxyTo(port), '/');
  sent.end();
  await expect(bytesOf(await response)).rejects.toThrow('aborted');
});

test('a server that cannot be reached is reported in the words of upstream', async () => {
  const unused = createTcpServer().listen(0, '127.0.0.1');
  await once(unused, 'listening');
  const { port } = unused.address() as AddressInfo;
  unused.close();
  await once(unused, 'close');
  const { sent, response } = open(await proxyTo(port), '/');
  sent.end();
  const answer = await response;
  expect(answer.statusCode).toBe(503);
  expect((await bytesOf(answer)).toString()).toBe(
    `error trying to reach service: dial tcp 127.0.0.1:${port}: connect: connection refused`,
  );
});

test('an upgraded connection passes bytes both ways, and its end', async () => {
  const { server, port } = await listen((_incoming, response) => response.writeHead(403).end('no'));
  server.on('upgrade', (incoming, socket, head) => {
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${incoming.headers.upgrade}\r\n\r\nhello `,
    );
    let text = head.toString();
    socket.on('data', (data) => {
      text += data;
      if (text.endsWith('world')) socket.end(text);
    });
  });
  const socket = connect(await proxyTo(port), '127.0.0.1');
  socket.write('GET /proxy/ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: own/1\r\n\r\nthe ');
  const [begin] = await once(socket, 'data');
  socket.write('world');
  const text = Buffer.concat([begin, ...(await socket.toArray())]).toString();
  expect(text).toMatch(/^HTTP\/1.1 101 .*upgrade: own\/1\r\n\r\nhello the world$/is);
});

test('an https server is reached whatever its certificate is, also by an upgraded connection', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-proxy-'));
  closing.push(() => rmSync(folder, { recursive: true }));
  // The certificate has an authority that the proxy does not know, and names another host.
  const { serving } = await loadOrCreatePki(folder, { hostnames: ['elsewhere'], ips: [], now: Date.now() });
  const server = createHttpsServer({ cert: serving.certificate, key: serving.key }, (incoming, response) => {
    incoming.pipe(response);
  });
  server.on('upgrade', (_incoming, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: own/1\r\n\r\n');
    socket.pipe(socket);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  closing.push(() => void server.close().closeAllConnections());
  const proxy = await proxyTo((server.address() as AddressInfo).port, 'https');
  const { sent, response } = open(proxy, '/', { method: 'POST' });
  sent.end('over TLS');
  expect((await bytesOf(await response)).toString()).toBe('over TLS');
  const socket = connect(proxy, '127.0.0.1');
  socket.write('GET /proxy/ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: own/1\r\n\r\n');
  await once(socket, 'data');
  socket.write('there and back');
  expect(String((await once(socket, 'data'))[0])).toBe('there and back');
  socket.destroy();
});

test('a refused upgrade is an ordinary response', async () => {
  const { port } = await listen((_incoming, response) => response.writeHead(403).end('no'));
  const { sent, response } = open(await proxyTo(port), '/ws', { headers: { Connection: 'Upgrade', Upgrade: 'own/1' } });
  sent.end();
  const answer = await response;
  expect([answer.statusCode, (await bytesOf(answer)).toString()]).toEqual([403, 'no']);
});

test('a refused upgrade passes a response of 20 MB', async () => {
  const body = Buffer.alloc(20_000_000, 'x');
  const { port } = await listen((_incoming, response) => response.writeHead(403).end(body));
  const { sent, response } = open(await proxyTo(port), '/ws', { headers: { Connection: 'Upgrade', Upgrade: 'own/1' } });
  sent.end();
  expect((await bytesOf(await response)).length).toBe(body.length);
});
