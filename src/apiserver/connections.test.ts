import { once } from 'node:events';
import type { Agent } from 'node:https';
import { connect, type Socket } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { expect, test, vi } from 'vitest';
import { coreResource } from '../api/resources.ts';
import type { KubeObject } from '../machinery/meta.ts';
import { createVirtualTimers } from '../platform/virtual-timers.ts';
import { DEFAULT_LIMITS } from './http/bounds/limits.ts';
import { agentFor, noNodes, startTestServer, type TestServer } from './server-fixture.ts';

const PODS = '/api/v1/namespaces/default/pods';
const TOO_MANY = {
  kind: 'Status',
  status: 'Failure',
  reason: 'TooManyRequests',
  message: 'Too many requests, please try again later.',
  details: { retryAfterSeconds: 1 },
  code: 429,
};

const start = (limits: Partial<typeof DEFAULT_LIMITS>, more: object = {}): Promise<TestServer> =>
  startTestServer({ limits: { ...DEFAULT_LIMITS, ...limits }, ...more });

test('a watch beyond the limit is refused until another watch ends', async () => {
  await using at = await start({ watches: 2 });
  const watch = vi.spyOn(at.backend, 'watch');
  const leave = new AbortController();
  const first = await at.open('GET', `${PODS}?watch=1`, { signal: leave.signal });
  first.on('error', () => undefined);
  await at.open('GET', `${PODS}?watch=1`);
  const refused = await at.call('GET', `${PODS}?watch=1`);
  expect(refused).toMatchObject({ code: 429, headers: { 'retry-after': '1' }, json: TOO_MANY });
  expect(await at.call('GET', PODS)).toMatchObject({ code: 200 });
  leave.abort();
  await watch.mock.results[0]?.value;
  expect((await at.open('GET', `${PODS}?watch=1`)).statusCode).toBe(200);
});

test('a log or stream beyond the limit is refused with an HTTP response, even if an upgrade is requested', async () => {
  const finish = new AbortController();
  const nodes = {
    ...noNodes,
    async *logs() {
      yield Buffer.from('a line\n');
      await once(finish.signal, 'abort');
    },
  };
  await using at = await start({ streams: 1 }, { nodes });
  const pod = { metadata: { name: 'p' }, spec: { nodeName: 'n', containers: [{ name: 'app', image: 'x' }] } };
  await at.api.create(coreResource('pods'), 'default', { apiVersion: 'v1', kind: 'Pod', ...pod } as KubeObject);
  const log = await at.open('GET', `${PODS}/p/log?follow=true`);
  expect(log.statusCode).toBe(200);
  expect(await at.call('GET', `${PODS}/p/log`)).toMatchObject({ code: 429, json: TOO_MANY });
  const upgrade = { connection: 'Upgrade', upgrade: 'SPDY/3.1', 'x-stream-protocol-version': 'v4.channel.k8s.io' };
  for (const path of ['exec?command=a&stdout=true', 'attach?stdout=true', 'portforward']) {
    const refused = await at.call('POST', `${PODS}/p/${path}`, { headers: upgrade });
    expect(refused).toMatchObject({ code: 429, headers: { 'retry-after': '1' }, json: TOO_MANY });
  }
  const over = once(log.resume(), 'end');
  finish.abort();
  await over;
  const again = await at.open('GET', `${PODS}/p/log?follow=true`);
  expect(again.statusCode).toBe(200);
});

const closed = (socket: Socket): Promise<unknown> => once(socket.on('error', () => undefined).resume(), 'close');

test('the oldest of too many unfinished handshakes is closed, and other clients are served', async () => {
  await using at = await start({ handshakes: 3 });
  const { host, port } = at.server;
  const silent: Socket[] = [];
  for (let index = 0; index < 3; index++) {
    const socket = connect(port, host);
    await once(socket, 'connect');
    silent.push(socket);
  }
  const oldestClosed = closed(silent[0] as Socket);
  expect(await at.call('GET', PODS)).toMatchObject({ code: 200 });
  await oldestClosed;
  expect(silent.slice(1).some((socket) => socket.closed)).toBe(false);
  for (const socket of silent) socket.destroy();
});

test('a connection beyond the limit is closed, and so are idle connections, so that the next client is served', async () => {
  await using at = await start({ connections: 3 });
  const { host, port } = at.server;
  const open = async (): Promise<TLSSocket> => {
    const socket = connectTls({ host, port, ca: at.pki.caCertificate });
    await once(socket, 'secureConnect');
    socket.write(`GET /healthz HTTP/1.1\r\nhost: ${host}\r\n\r\n`);
    await once(socket, 'data');
    return socket;
  };
  const idle = await Promise.all([open(), open(), open()]);
  const ended = Promise.all(idle.map(closed));
  await closed(connect(port, host));
  await ended;
  expect(await at.call('GET', PODS)).toMatchObject({ code: 200 });
});

test('if there are too many connections, those without a request are closed after a second, and those with one are kept', async () => {
  const timers = createVirtualTimers();
  await using at = await start({ connections: 4 }, { timers });
  const { host, port } = at.server;
  const watch = await at.open('GET', `${PODS}?watch=1`);
  const silent = async (bytes: string): Promise<TLSSocket> => {
    const socket = connectTls({ host, port, ca: at.pki.caCertificate });
    await once(socket, 'secureConnect');
    socket.write(bytes);
    return socket;
  };
  const headless = await Promise.all(['', 'GET /healthz HT', 'GET /healthz HTTP/1.1\r\nhost: a\r\n'].map(silent));
  const ended = Promise.all(headless.map(closed));
  await closed(connect(port, host));
  expect(headless.some((socket) => socket.closed)).toBe(false);
  timers.advance(1000);
  await closed(connect(port, host));
  await ended;
  expect(await at.call('GET', PODS)).toMatchObject({ code: 200 });
  expect(watch.destroyed).toBe(false);
});

test('a user cannot take all places for watches', async () => {
  const authorizer = {
    authorize: async () => ({ allowed: true, reason: '' }),
    rulesFor: async () => ({ roles: [], errors: [] }),
  };
  await using at = await start({ watches: 8 }, { authorizer });
  const [jane, joe, node] = await Promise.all([
    agentFor(at, 'jane'),
    agentFor(at, 'joe'),
    agentFor(at, 'system:node:n', { organization: 'system:nodes' }),
  ]);
  const codesOf = async (agent: Agent, count: number): Promise<(number | undefined)[]> => {
    const codes: (number | undefined)[] = [];
    while (codes.length < count) codes.push((await at.open('GET', `${PODS}?watch=1`, { agent })).statusCode);
    return codes;
  };
  expect(await codesOf(jane, 4)).toEqual([200, 200, 200, 429]);
  expect(await codesOf(joe, 3)).toEqual([200, 200, 429]);
  expect(await codesOf(node, 3)).toEqual([200, 200, 429]);
  expect((await at.open('GET', `${PODS}?watch=1`)).statusCode).toBe(200);
  for (const agent of [jane, joe, node]) agent.destroy();
});
