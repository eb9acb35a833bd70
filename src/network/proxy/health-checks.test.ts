import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createHealthChecks } from './health-checks.ts';
import { serviceOf } from './proxy-fixture.ts';

async function freePort(): Promise<number> {
  const server = createServer().listen(0);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

const serviceWith = (healthCheckNodePort: number) =>
  serviceOf('web', { type: 'LoadBalancer', externalTrafficPolicy: 'Local', healthCheckNodePort });

/** Resolves with undefined if the port is closed. */
async function check(port: number): Promise<Response | undefined> {
  return fetch(`http://127.0.0.1:${port}/healthz`, { headers: { connection: 'close' } }).catch(() => undefined);
}

test('the port of a Service says how many of its endpoints are on the node', async () => {
  const port = await freePort();
  const checks = createHealthChecks(() => expect.fail('the port is free'));
  onTestFinished(() => checks.close());
  checks.update('default/web', serviceWith(port), 2);
  const response = await expect
    .poll(() => check(port))
    .toBeDefined()
    .then(() => check(port));
  expect(response?.status).toBe(200);
  expect(response?.headers.get('content-type')).toBe('application/json');
  expect(response?.headers.get('x-load-balancing-endpoint-weight')).toBe('2');
  expect(await response?.json()).toEqual({
    service: { namespace: 'default', name: 'web' },
    localEndpoints: 2,
    serviceProxyHealthy: true,
  });
  checks.update('default/web', serviceWith(port), 0);
  expect((await check(port))?.status).toBe(503);
  checks.update('default/web', serviceWith(port), 1);
  expect((await check(port))?.status).toBe(200);
  checks.setHealthy(false);
  const unhealthy = await check(port);
  expect(unhealthy?.status).toBe(503);
  expect(await unhealthy?.json()).toMatchObject({ localEndpoints: 1, serviceProxyHealthy: false });
  checks.update('default/web', undefined, 0);
  expect(await check(port)).toBeUndefined();
});

test('a port that is in use is reported, and tried again with the next update', async () => {
  const taken = createServer().listen(0);
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo;
  const failed = Promise.withResolvers<[string | undefined, number]>();
  const checks = createHealthChecks((service, number) => failed.resolve([service.metadata.name, number]));
  onTestFinished(() => checks.close());
  checks.update('default/web', serviceWith(port), 1);
  expect(await failed.promise).toEqual(['web', port]);
  taken.close();
  await once(taken, 'close');
  checks.update('default/web', serviceWith(port), 1);
  await expect.poll(async () => (await check(port))?.status).toBe(200);
});

test('a Service that gets the port of another one opens it as soon as the other one has given it up', async () => {
  const [first, second] = [await freePort(), await freePort()];
  const checks = createHealthChecks(() => expect.fail('the ports are free'));
  onTestFinished(() => checks.close());
  const nameOf = async (port: number): Promise<unknown> => {
    const response = await check(port);
    return ((await response?.json()) as { service: { name: string } } | undefined)?.service.name;
  };
  const named = (name: string, port: number) => {
    const service = serviceWith(port);
    return { ...service, metadata: { ...service.metadata, name } };
  };
  checks.update('default/a', named('a', first), 1);
  await expect.poll(() => nameOf(first)).toBe('a');
  checks.update('default/b', named('b', first), 1);
  checks.update('default/c', named('c', first), 1);
  checks.update('default/c', undefined, 0);
  expect(await nameOf(first)).toBe('a');
  checks.update('default/a', named('a', second), 1);
  await expect.poll(() => nameOf(first)).toBe('b');
  await expect.poll(() => nameOf(second)).toBe('a');
  checks.update('default/a', named('a', first), 1);
  checks.update('default/b', undefined, 0);
  await expect.poll(() => nameOf(first)).toBe('a');
});

function idleConnections(port: number, count: number): Socket[] {
  const sockets = Array.from({ length: count }, () => connect(port, '127.0.0.1').on('error', () => undefined));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  return sockets;
}

const areClosed = (sockets: readonly Socket[]) =>
  Promise.all(sockets.map((socket) => socket.closed || once(socket.resume(), 'close')));

test('a port serves 64 connections at a time, each for one request, and closes idle ones', {
  timeout: 20_000,
}, async () => {
  const port = await freePort();
  const checks = createHealthChecks(() => expect.fail('the port is free'));
  onTestFinished(() => checks.close());
  checks.update('default/web', serviceWith(port), 1);
  const response = await expect
    .poll(() => check(port))
    .toBeDefined()
    .then(() => fetch(`http://127.0.0.1:${port}/healthz`));
  expect(response.headers.get('connection')).toBe('close');
  await response.text();
  const idle = idleConnections(port, 64);
  await Promise.all(idle.map((socket) => once(socket, 'connect')));
  // The kernel opens the connections before the server accepts them.
  await expect.poll(() => check(port)).toBeUndefined();
  await areClosed(idle);
  expect((await check(port))?.status).toBe(200);
});

test('all ports together serve 512 connections at a time', { timeout: 20_000 }, async () => {
  const checks = createHealthChecks(() => expect.fail('the ports are free'));
  onTestFinished(() => checks.close());
  const ports: number[] = [];
  for (let index = 0; index < 9; index++) {
    const port = await freePort();
    ports.push(port);
    checks.update(`default/web${index}`, serviceWith(port), 1);
    await expect.poll(() => check(port)).toBeDefined();
  }
  const last = ports.pop() as number;
  const idle = ports.flatMap((port) => idleConnections(port, 64));
  await Promise.all(idle.map((socket) => once(socket, 'connect')));
  await expect.poll(() => check(last)).toBeUndefined();
  for (const socket of idle) socket.destroy();
  await expect.poll(async () => (await check(last))?.status).toBe(200);
});
