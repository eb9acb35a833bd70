import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { makeAuthority } from '../../apiserver/pki/certificates.ts';
import { DeadlineExceeded, HandlerFailure } from './failure.ts';
import { type HttpRequest, httpGet, PlainHttpFailure } from './http.ts';

const never = new AbortController().signal;
const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function listen(server: Server): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return (server.address() as AddressInfo).port;
}

const serve = (listener: RequestListener): Promise<number> => listen(createServer(listener));
const serveTcp = (listener: (socket: Socket) => void): Promise<number> => listen(createTcpServer(listener));

const request = (port: number, extra: Partial<HttpRequest> = {}): HttpRequest => ({
  scheme: 'http',
  host: '127.0.0.1',
  port,
  path: '/',
  headers: [],
  userAgent: 'kube-probe/1.33',
  ...extra,
});

async function seen(extra: Partial<HttpRequest>): Promise<IncomingMessage> {
  const { promise, resolve } = Promise.withResolvers<IncomingMessage>();
  const port = await serve((incoming, response) => {
    resolve(incoming);
    response.end();
  });
  await httpGet(request(port, extra), never);
  return promise;
}

describe('the request', () => {
  test('httpGet sends a GET that accepts every type and closes its connection', async () => {
    const incoming = await seen({ path: '/healthz?full=1' });
    expect(incoming.method).toBe('GET');
    expect(incoming.url).toBe('/healthz?full=1');
    expect(incoming.headers).toEqual({
      host: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
      'user-agent': 'kube-probe/1.33',
      accept: '*/*',
      connection: 'close',
    });
  });

  test.each([
    ['', '/'],
    ['healthz', '/healthz'],
    ['/a b/ü', '/a%20b/%C3%BC'],
    ['/a%20b?q=%41', '/a%20b?q=%41'],
    ['/100%?x', '/100%25%3Fx'],
    ['/a#part', '/a'],
    ['http://elsewhere:1/x?y', '/x?y'],
    ['/../a//b', '/../a//b'],
  ])('httpGet requests the path "%s" as %s', async (path, url) => {
    expect((await seen({ path })).url).toBe(url);
  });

  test('httpGet sends the given headers, including several of the same name', async () => {
    const { headers, rawHeaders } = await seen({
      headers: [
        { name: 'Host', value: 'example.com' },
        { name: 'user-agent', value: 'mine' },
        { name: 'accept', value: 'text/plain' },
        { name: 'X-Many', value: 'one' },
        { name: 'X-Many', value: 'zwö' },
        { name: 'Content-Length', value: '5' },
      ],
    });
    expect(headers).toMatchObject({ host: 'example.com', 'user-agent': 'mine', accept: 'text/plain' });
    expect(headers['x-many']).toBe(`one, ${Buffer.from('zwö').toString('latin1')}`);
    expect(rawHeaders.filter((name) => name.toLowerCase() === 'accept')).toHaveLength(1);
    expect(headers).not.toHaveProperty('content-length');
  });

  test('httpGet omits User-Agent and Accept if they are given as empty', async () => {
    const { headers } = await seen({
      headers: [
        { name: 'User-Agent', value: '' },
        { name: 'Accept', value: '' },
      ],
    });
    expect(headers).not.toHaveProperty('user-agent');
    expect(headers).not.toHaveProperty('accept');
  });

  test.each([
    [{ name: 'X-Bad', value: 'a\r\nInjected: yes' }, 'invalid header field value for "X-Bad"'],
    [{ name: 'X Bad', value: 'a' }, 'invalid header field name "X Bad"'],
  ])('httpGet refuses to send the invalid header %j', async (header, reason) => {
    const port = await serve((_, response) => response.end());
    const got = httpGet(request(port, { headers: [header] }), never);
    await expect(got).rejects.toThrow(new HandlerFailure(`Get "http://127.0.0.1:${port}/": net/http: ${reason}`));
  });
});

describe('the response', () => {
  test.each([200, 204, 304, 404, 503])('httpGet returns a response with the status %i', async (status) => {
    const port = await serve((_, response) => response.writeHead(status).end());
    expect(await httpGet(request(port), never)).toEqual({ status, body: '' });
  });

  test('httpGet returns the first 10 KiB of the body without waiting for the rest', async () => {
    const port = await serve((_, response) => void response.write(`${'a'.repeat(10 * 1024)}b`));
    expect(await httpGet(request(port), never)).toEqual({ status: 200, body: 'a'.repeat(10 * 1024) });
  });

  test('httpGet accepts every certificate of an HTTPS server', async () => {
    const { certificate, key } = await makeAuthority('nobody', Date.now());
    const port = await listen(createHttpsServer({ cert: certificate, key }, (_, response) => response.end('secure')));
    expect(await httpGet(request(port, { scheme: 'https' }), never)).toEqual({ status: 200, body: 'secure' });
  });

  test('httpGet closes its connection in spite of a keep-alive header', async () => {
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    const server = createServer((_, response) => response.end());
    server.on('connection', (socket) => socket.once('close', () => resolve()));
    const port = await listen(server);
    await httpGet(request(port, { headers: [{ name: 'Connection', value: 'keep-alive' }] }), never);
    await closed;
  });
});

describe('redirects', () => {
  const to = (response: ServerResponse, location: string, body = ''): void =>
    void response.writeHead(302, { location }).end(body);

  test('httpGet follows redirects on the same host, also to another port', async () => {
    const target = await serve((incoming, response) => response.end(`${incoming.url} ${incoming.headers.host}`));
    const port = await serve((_, response) => to(response, `http://127.0.0.1:${target}/there?x=1`));
    const headers = [{ name: 'Host', value: 'example.com' }];
    expect(await httpGet(request(port, { headers }), never)).toEqual({
      status: 200,
      body: `/there?x=1 127.0.0.1:${target}`,
    });
  });

  test('httpGet keeps the given Host header on a relative redirect', async () => {
    const port = await serve((incoming, response) =>
      incoming.url === '/' ? to(response, 'next') : response.end(`${incoming.url} ${incoming.headers.host}`),
    );
    const headers = [{ name: 'Host', value: 'example.com' }];
    expect((await httpGet(request(port, { headers }), never)).body).toBe('/next example.com');
  });

  test('httpGet returns a redirect to another host as the response', async () => {
    const port = await serve((_, response) => to(response, 'http://localhost/', 'moved'));
    expect(await httpGet(request(port), never)).toEqual({ status: 302, body: 'moved' });
  });

  test.each([
    ['on the same host', '/', undefined],
    ['to another host', 'http://localhost/', { status: 302, body: '10' }],
  ])('httpGet sends at most ten requests if the tenth response is a redirect %s', async (_title, last, answer) => {
    let requests = 0;
    const port = await serve((_, response) => {
      requests++;
      to(response, requests < 10 ? '/' : last, `${requests}`);
    });
    const got = httpGet(request(port), never);
    if (answer !== undefined) expect(await got).toEqual(answer);
    else await expect(got).rejects.toThrow(new HandlerFailure('Get "/": stopped after 10 redirects'));
    expect(requests).toBe(10);
  });

  test.each([
    ['http://[', 'failed to parse Location header "http://["'],
    ['gopher://127.0.0.1/', 'unsupported protocol scheme "gopher"'],
  ])('httpGet rejects a redirect to %s', async (location, reason) => {
    const port = await serve((_, response) => to(response, location));
    await expect(httpGet(request(port), never)).rejects.toThrow(reason);
  });
});

describe('failures', () => {
  const failure = async (port: number, extra: Partial<HttpRequest> = {}, signal = never): Promise<string> => {
    const error: unknown = await httpGet(request(port, extra), signal).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(HandlerFailure);
    return (error as Error).message;
  };

  test('httpGet rejects when the connection is refused', async () => {
    const port = await serve(() => undefined);
    for (const close of closers.splice(0)) await close();
    expect(await failure(port, { path: '/a' })).toBe(
      `Get "http://127.0.0.1:${port}/a": dial tcp 127.0.0.1:${port}: connect: connection refused`,
    );
    expect(await failure(port, { scheme: 'https' })).toBe(
      `Get "https://127.0.0.1:${port}/": dial tcp 127.0.0.1:${port}: connect: connection refused`,
    );
  });

  test('httpGet rejects when the host name does not resolve', async () => {
    expect(await failure(80, { host: 'no-such-host.invalid' })).toMatch(
      /^Get "http:\/\/no-such-host\.invalid:80\/": dial tcp: lookup no-such-host\.invalid: (no such host|Temporary failure in name resolution)$/,
    );
  });

  test('httpGet rejects when the connection is closed without a response', async () => {
    const port = await serveTcp((socket) => socket.end());
    expect(await failure(port)).toBe(`Get "http://127.0.0.1:${port}/": EOF`);
  });

  test('httpGet rejects when the connection is reset', async () => {
    const port = await serveTcp((socket) => void socket.once('data', () => socket.resetAndDestroy()));
    expect(await failure(port)).toMatch(
      new RegExp(
        `^Get "http://127\\.0\\.0\\.1:${port}/": read tcp 127\\.0\\.0\\.1:\\d+->127\\.0\\.0\\.1:${port}: read: connection reset by peer$`,
      ),
    );
  });

  test('httpGet rejects when the response is not HTTP', async () => {
    const port = await serveTcp((socket) => void socket.write('SSH-2.0-x\r\n'));
    expect(await failure(port)).toBe(
      `Get "http://127.0.0.1:${port}/": net/http: HTTP/1.x transport connection broken: malformed HTTP response "SSH-2.0-x"`,
    );
  });

  test('httpGet rejects when the server does not speak TLS', async () => {
    const port = await serve((_, response) => response.end());
    const got = httpGet(request(port, { scheme: 'https' }), never);
    await expect(got).rejects.toThrow(PlainHttpFailure);
    await expect(got).rejects.toThrow(
      `Get "https://127.0.0.1:${port}/": http: server gave HTTP response to HTTPS client`,
    );
  });

  test('httpGet rejects when the body is truncated', async () => {
    const port = await serve((_, response) => {
      response.writeHead(200, { 'content-length': '10' }).write('abc');
      response.socket?.end();
    });
    expect(await failure(port)).toBe('unexpected EOF');
  });

  test('httpGet rejects when there is no response in time', async () => {
    const end = new AbortController();
    const port = await serve(() => end.abort(new DeadlineExceeded()));
    expect(await failure(port, {}, end.signal)).toBe(
      `Get "http://127.0.0.1:${port}/": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`,
    );
  });

  test('httpGet rejects when the body does not end in time', async () => {
    const end = new AbortController();
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    const port = await serve((_, response) => {
      response.once('close', () => resolve());
      response.write('a');
    });
    // This event comes before the listeners for the response: the signal aborts after the headers have arrived, and before the body ends.
    const late = (): void => queueMicrotask(() => end.abort(new DeadlineExceeded()));
    subscribe('http.client.response.finish', late);
    closers.push(async () => void unsubscribe('http.client.response.finish', late));
    expect(await failure(port, {}, end.signal)).toBe(
      'context deadline exceeded (Client.Timeout or context cancellation while reading body)',
    );
    await closed;
  });

  test('httpGet rejects when the server requires a client certificate', async () => {
    const { certificate, key } = await makeAuthority('nobody', Date.now());
    const server = createHttpsServer({ cert: certificate, key, requestCert: true }, (_, response) => response.end());
    const port = await listen(server);
    expect(await failure(port, { scheme: 'https' })).toMatch(
      new RegExp(`^Get "https://127\\.0\\.0\\.1:${port}/": tls: .*certificate required$`),
    );
  });

  test('httpGet closes the connection and rejects with the reason when its signal aborts', async () => {
    const end = new AbortController();
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    const port = await serve((_, response) => {
      response.once('close', () => resolve());
      end.abort(new Error('given up'));
    });
    await expect(httpGet(request(port), end.signal)).rejects.toThrow('given up');
    await closed;
    await expect(httpGet(request(port), end.signal)).rejects.toThrow('given up');
  });
});
