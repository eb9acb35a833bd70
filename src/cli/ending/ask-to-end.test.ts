import { once } from 'node:events';
import { type AddressInfo, connect as connectTo, createServer, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { startTestServer } from '../../apiserver/server-fixture.ts';
import { httpClient } from '../../client/http-client.ts';
import { createWorkloadsEnd } from '../../engine/ending/workloads-end.ts';
import { systemTimers } from '../../platform/node-js.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { askToEnd } from './ask-to-end.ts';

async function setUp() {
  const stopping = new AbortController();
  const said: string[] = [];
  let changed = Promise.withResolvers<boolean>();
  const workloads = createWorkloadsEnd({
    log: silentLog,
    stopping: stopping.signal,
    changed: (isEnding) => changed.resolve(isEnding),
  });
  workloads.onEnd(() => said.push('controllers run'));
  const connect = (): void =>
    workloads.connect({
      endAll: (seconds) => void said.push(`static Pods end in ${seconds} s`),
      runAll: () => void said.push('static Pods run'),
    });
  const server = await startTestServer({ endWorkloads: workloads.begin });
  onTestFinished(() => server[Symbol.asyncDispose]());
  const { host, port } = server.server;
  const { admin, caCertificate } = server.pki;
  const credentials = { certPem: admin.certificate, keyPem: admin.key, caPem: caCertificate };
  const ask = async (seconds: number, at = port): Promise<AbortController> => {
    const client = httpClient({ server: `https://${host}:${at}`, ...credentials });
    const command = new AbortController();
    const patience = {
      timers: systemTimers(),
      signal: command.signal,
      failed: () => undefined,
      refused: expect.unreachable,
    };
    await askToEnd(client, process.pid, seconds, patience);
    return command;
  };
  const next = (): Promise<boolean> => {
    changed = Promise.withResolvers();
    return changed.promise;
  };
  return { server, stopping, said, workloads, connect, ask, next };
}

test('the workloads end while at least one lifepod down asks for it, and run again when the last one is interrupted', async () => {
  const { said, workloads, connect, ask, next } = await setUp();
  const first = await ask(20);
  expect(workloads.isActive()).toBe(true);
  connect();
  const second = await ask(1);
  expect(said).toEqual(['static Pods end in 20 s', 'static Pods end in 1 s']);
  first.abort();
  const third = await ask(2);
  expect(workloads.isActive()).toBe(true);
  const run = next();
  second.abort();
  third.abort();
  expect(await run).toBe(false);
  expect(workloads.isActive()).toBe(false);
  expect(said.slice(3)).toEqual(['static Pods run', 'controllers run']);
});

test('static Pods that start later end with the shortest grace period of all requests', async () => {
  const { said, connect, ask } = await setUp();
  await ask(1);
  await ask(20);
  connect();
  await ask(30);
  expect(said).toEqual(['static Pods end in 1 s', 'static Pods end in 1 s']);
});

test('a lifepod down whose connection is cut asks again', async () => {
  const { server, said, workloads, connect, ask, next } = await setUp();
  connect();
  const connections: Socket[] = [];
  const between = createServer((socket) => {
    const onward = connectTo(server.server.port, server.server.host);
    connections.push(socket, onward);
    socket.pipe(onward).pipe(socket);
  });
  await once(between.listen(0, server.server.host), 'listening');
  onTestFinished(() => void between.close());
  const command = await ask(20, (between.address() as AddressInfo).port);
  const run = next();
  for (const each of connections) each.destroy();
  expect(await run).toBe(false);
  await expect.poll(() => workloads.isActive(), { timeout: 30_000 }).toBe(true);
  const end = ['static Pods end in 20 s'];
  expect(said).toEqual([...end, 'static Pods run', 'controllers run', ...end]);
  const over = next();
  command.abort();
  expect(await over).toBe(false);
});

test('the workloads of an engine that stops after lifepod down do not run again', async () => {
  const { server, stopping, said, workloads, ask } = await setUp();
  await ask(1);
  stopping.abort();
  await server.server.close();
  expect(workloads.isActive()).toBe(true);
  expect(said).toEqual([]);
});

test('the request to end the workloads must be a POST with a whole number of seconds', async () => {
  const { server, workloads } = await setUp();
  expect(await server.call('GET', '/end-workloads')).toMatchObject({ code: 405 });
  expect(await server.call('POST', '/end-workloads?gracePeriodSeconds=soon')).toMatchObject({
    code: 400,
    json: { message: 'gracePeriodSeconds: "soon" is not a whole number of seconds' },
  });
  expect(workloads.isActive()).toBe(false);
});
