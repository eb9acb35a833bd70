import { createPrivateKey } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import type { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { PODS } from '../../src/api/resources.ts';
import { makeAuthority, makeLeaf } from '../../src/apiserver/pki/certificates.ts';
import { hintsFor } from '../../src/cli/hints.ts';
import { skipEntry } from '../../src/cli/skip.ts';
import type { Client } from '../../src/client/client.ts';
import { httpClient } from '../../src/client/http-client.ts';
import { isSilence } from '../../src/client/silence.ts';
import { notFound, unauthorized } from '../../src/machinery/status.ts';
import type { WatchEvent } from '../../src/ports/backend.ts';

const pod = (name: string) => ({ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'a' } });

type Handler = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;
let server: Server;
let client: Client;
let handler: Handler;
let credentials: { caPem: string; certPem: string; keyPem: string };
let connections: Set<Duplex>;

beforeAll(async () => {
  const now = Date.now();
  const authority = await makeAuthority('test', now);
  const issuer = { certificate: authority.certificate, key: createPrivateKey(authority.key) };
  const serving = await makeLeaf(issuer, { commonName: 'server', usage: 'server', ips: ['127.0.0.1'] }, now);
  const admin = await makeLeaf(issuer, { commonName: 'admin', usage: 'client' }, now);
  credentials = { caPem: authority.certificate, certPem: admin.certificate, keyPem: admin.key };
  connections = new Set();
  server = createServer(
    {
      key: serving.key,
      cert: serving.certificate,
      ca: authority.certificate,
      requestCert: true,
      rejectUnauthorized: true,
    },
    (request, response) => void handler(request, response),
  );
  server.on('connection', (socket) => {
    connections.add(socket);
    socket.on('close', () => connections.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});
beforeEach(() => {
  const { port } = server.address() as AddressInfo;
  client = httpClient({ server: `https://127.0.0.1:${port}`, ...credentials });
});

/** Returns the list to which the requests are added. */
function respond(code: number, body: unknown, headers: Record<string, string | string[]> = {}) {
  const requests: { line: string; type: string | undefined; body: unknown }[] = [];
  handler = async (request, response) => {
    const sent = await text(request);
    requests.push({
      line: `${request.method} ${request.url}`,
      type: request.headers['content-type'],
      body: sent && JSON.parse(sent),
    });
    response.writeHead(code, { 'content-type': 'application/json', ...headers });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };
  return requests;
}

test('each verb sends the method, path, query and body that the API expects', async () => {
  const { api } = client;
  const requests = respond(200, pod('x'));
  await api.get(PODS, 'a', 'x');
  await api.list(PODS, { labelSelector: 'a in (b,c)', limit: 5, continue: 'next' });
  await api.create(PODS, 'a', pod('x'), { fieldManager: 'me', fieldValidation: 'Strict', dryRun: true });
  await api.create(PODS, 'a', pod('x'), { name: 'x', subresource: 'binding' });
  await api.update(PODS, pod('x'), { subresource: 'status' });
  await api.patch(PODS, 'a', 'x', 'application/merge-patch+json', { a: 1 });
  await api.delete(PODS, 'a', 'x', { gracePeriodSeconds: 0, preconditions: { uid: 'u' } });
  await api.deleteCollection(PODS, { namespace: 'a', labelSelector: 'a=b' });
  expect(requests.map((each) => each.line)).toEqual([
    'GET /api/v1/namespaces/a/pods/x',
    'GET /api/v1/pods?labelSelector=a+in+%28b%2Cc%29&limit=5&continue=next',
    'POST /api/v1/namespaces/a/pods?dryRun=All&fieldManager=me&fieldValidation=Strict',
    'POST /api/v1/namespaces/a/pods/x/binding',
    'PUT /api/v1/namespaces/a/pods/x/status',
    'PATCH /api/v1/namespaces/a/pods/x',
    'DELETE /api/v1/namespaces/a/pods/x',
    'DELETE /api/v1/namespaces/a/pods?labelSelector=a%3Db',
  ]);
  expect(requests[5]).toMatchObject({ type: 'application/merge-patch+json', body: { a: 1 } });
  expect(requests[6]?.body).toEqual({
    kind: 'DeleteOptions',
    apiVersion: 'v1',
    gracePeriodSeconds: 0,
    preconditions: { uid: 'u' },
  });
});

test('lifepod skip PUTs a DeferControl to the defer subresource of the Pod', async () => {
  const requests = respond(200, { ...pod('x'), spec: { containers: [] } });
  expect(await skipEntry({ client, namespace: 'a', hints: hintsFor({}, { KUBECONFIG: 'k' }, ['k']) }, 'x', 'bye')).toBe(
    'defer container bye of Pod x is given up: it will not run',
  );
  expect(requests.map((each) => each.line)).toEqual([
    'GET /api/v1/namespaces/a/pods/x',
    'PUT /api/v1/namespaces/a/pods/x/defer',
  ]);
  expect(requests[1]?.body).toEqual({
    apiVersion: 'lifepod.io/v1',
    kind: 'DeferControl',
    metadata: { name: 'x', namespace: 'a' },
    skip: 'bye',
  });
  respond(404, notFound(PODS, 'x').status);
  await expect(
    skipEntry({ client, namespace: 'a', hints: hintsFor({}, { KUBECONFIG: 'k' }, ['k']) }, 'x', 'bye'),
  ).rejects.toMatchObject({
    name: 'UserError',
    message: `no Pod x in namespace a: 'kubectl get pods -A' lists all Pods`,
  });
});

test('the HTTP client reuses one connection for many calls', async () => {
  respond(200, pod('x'));
  const before = connections.size;
  for (let i = 0; i < 5; i++) await client.api.get(PODS, 'a', 'x');
  expect(connections.size).toBe(before + 1);
});

test('a Status in a response is thrown as an ApiError', async () => {
  const { status } = notFound(PODS, 'x');
  respond(404, status);
  await expect(client.api.get(PODS, 'a', 'x')).rejects.toMatchObject({
    name: 'ApiError',
    status,
    code: 404,
    reason: 'NotFound',
  });
  respond(502, 'bad gateway');
  await expect(client.api.get(PODS, 'a', 'x')).rejects.toMatchObject({
    name: 'ApiError',
    code: 502,
    message: 'bad gateway',
  });
  respond(200, '{"half":');
  await expect(client.api.get(PODS, 'a', 'x')).rejects.toMatchObject({ name: 'ApiError', code: 503 });
});

test('a call whose credentials the server does not accept rejects with the sentence of the caller', async () => {
  respond(401, unauthorized().status);
  const { port } = server.address() as AddressInfo;
  const other = httpClient({ server: `https://127.0.0.1:${port}`, ...credentials, refused: () => 'other credentials' });
  await expect(other.api.get(PODS, 'a', 'x')).rejects.toMatchObject({
    message: 'other credentials',
    code: 401,
    reason: 'Unauthorized',
  });
});

test('Warning headers are passed to onWarning', async () => {
  respond(201, pod('x'), { warning: ['299 - "unknown field \\"spec.x\\""', '299 - "two, three"'] });
  const warnings: string[] = [];
  await client.api.create(PODS, 'a', pod('x'), { onWarning: (text) => warnings.push(text) });
  expect(warnings).toEqual(['unknown field "spec.x"', 'two, three']);
});

test('a call to an unreachable server rejects with an ApiError with code 503', async () => {
  const gone = httpClient({ server: 'https://127.0.0.1:1', ...credentials });
  await expect(gone.api.get(PODS, 'a', 'x')).rejects.toMatchObject({
    code: 503,
    message: expect.stringMatching(/^cannot reach the API server at https:\/\/127.0.0.1:1: .*ECONNREFUSED/),
  });
});

test('a call to a server that accepts the connection but never answers fails after the limit, also before the TLS handshake', async () => {
  const mute = createTcpServer((socket) => socket.on('error', () => undefined)).listen(0, '127.0.0.1');
  onTestFinished(() => void mute.close());
  await once(mute, 'listening');
  const { port } = mute.address() as AddressInfo;
  const log: string[] = [];
  const sent = () => {
    log.push('sent');
    return () => void log.push('ended');
  };
  const silent = httpClient({ server: `https://127.0.0.1:${port}`, ...credentials, silenceMillis: 50, sent });
  const error = await silent.api.get(PODS, 'a', 'x').catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code: 503, message: expect.stringContaining('has not answered for 0.05 s') });
  expect(isSilence(error)).toBe(true);
  expect(log.slice(0, 2)).toEqual(['sent', 'ended']);
  const { signal } = new AbortController();
  for (const call of [
    silent.open('/log', signal),
    silent.post('/copy', signal),
    silent.api.watch(PODS, {}, () => undefined, signal),
  ])
    expect(isSilence(await call.catch((reason: unknown) => reason))).toBe(true);
});

test('a server with a certificate of another authority is reported as another server than that of the kubeconfig', async () => {
  const other = await makeAuthority('other', Date.now());
  const { port } = server.address() as AddressInfo;
  const foreign = httpClient({ server: `https://127.0.0.1:${port}`, ...credentials, caPem: other.certificate });
  await expect(foreign.api.get(PODS, 'a', 'x')).rejects.toMatchObject({
    code: 503,
    message: expect.stringMatching(
      /^the server at https:\/\/127\.0\.0\.1:\d+ is not that of the kubeconfig: another certificate authority has issued its certificate \(/,
    ),
  });
});

test('a read is sent again when the server has closed the reused connection', async () => {
  respond(200, pod('x'));
  await client.api.get(PODS, 'a', 'x');
  let requests = 0;
  handler = (request, response) => {
    requests++;
    if (requests === 1) request.socket.destroy();
    else response.end(JSON.stringify(pod('y')));
  };
  expect((await client.api.get(PODS, 'a', 'y')).metadata.name).toBe('y');
  expect(requests).toBe(2);
});

test('a watch delivers events however they are split into chunks, until it is aborted', async () => {
  const stop = new AbortController();
  const line = Buffer.from(`${JSON.stringify({ type: 'ADDED', object: { ...pod('x'), data: 'Grüße 🎉' } })}\n`);
  const serverClosed = Promise.withResolvers<void>();
  handler = async (request, response) => {
    expect(request.url).toBe('/api/v1/namespaces/a/pods?resourceVersion=5&allowWatchBookmarks=true&watch=true');
    response.on('close', () => serverClosed.resolve());
    response.writeHead(200, { 'content-type': 'application/json' });
    for (const byte of line) {
      response.write(Buffer.of(byte));
      await new Promise(setImmediate);
    }
    response.write(Buffer.concat([line, line]));
  };
  const seen: WatchEvent[] = [];
  const options = { namespace: 'a', resourceVersion: '5', allowWatchBookmarks: true };
  await client.api.watch(
    PODS,
    options,
    (event) => {
      seen.push(event);
      if (seen.length === 3) stop.abort();
    },
    stop.signal,
  );
  expect(seen).toHaveLength(3);
  expect(new Set(seen.map((event) => JSON.stringify(event)))).toEqual(new Set([line.toString().trim()]));
  await serverClosed.promise;
});

test('a watch that cannot start rejects; a watch whose connection the server ends or loses resolves', async () => {
  const { signal } = new AbortController();
  const { status } = notFound(PODS, 'x');
  respond(404, status);
  await expect(client.api.watch(PODS, {}, () => {}, signal)).rejects.toMatchObject({ status });
  handler = (_request, response) => {
    response.end(`${JSON.stringify({ type: 'ADDED', object: pod('x') })}\n`);
  };
  let count = 0;
  await client.api.watch(PODS, {}, () => count++, signal);
  handler = (request, response) => {
    response.write(`${JSON.stringify({ type: 'ADDED', object: pod('x') })}\n`, () => request.socket.destroy());
  };
  await client.api.watch(PODS, {}, () => count++, signal);
  expect(count).toBe(2);
  await client.api.watch(PODS, {}, () => count++, AbortSignal.abort());
});
