/**
 * Tests that a user who sends many requests that hang delays neither administrators and components nor other users.
 * test/long/alone/crowds.test.ts sends thousands of requests to an engine.
 */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { type Agent, request } from 'node:https';
import type { TLSSocket } from 'node:tls';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createMetrics, type Metrics } from '../platform/metrics.ts';
import { createVirtualTimers } from '../platform/virtual-timers.ts';
import { CONFIG_MAPS, PODS } from './hostile-fixture.ts';
import { DEFAULT_LIMITS } from './http/bounds/limits.ts';
import { configMap } from './registry/testing.ts';
import { agentFor, startTestServer, type TestServer } from './server-fixture.ts';

const CROWD = 200;
/** The number of connections that are opened at a time, so that their TLS handshakes stay below the limit. */
const BATCH = 100;
const LIMITS = { ...DEFAULT_LIMITS, inFlight: 60, queued: 100 };
/** One user gets half of the 45 places in flight for users, and half of the 75 places in the queue, rounded up. */
const IN_FLIGHT = 23;
const QUEUED = 38;
/** The limit on the wait of another user's request, in CPU time of this thread, in which all clients of the test run. */
const WAIT_MILLIS = 1000;

let at: TestServer;
let metrics: Metrics;
let tenant: Agent;
/** Lets the create requests of objects named `held-…` continue. */
let release: () => void;

beforeEach(async () => {
  metrics = createMetrics();
  const authorizer = {
    authorize: async () => ({ allowed: true, reason: '' }),
    rulesFor: async () => ({ roles: [], errors: [] }),
  };
  at = await startTestServer({ metrics, authorizer, timers: createVirtualTimers(Date.now()), limits: LIMITS });
  tenant = await agentFor(at, 'tenant', { keepAlive: false });
  const released = Promise.withResolvers<void>();
  release = released.resolve;
  const create = at.backend.create.bind(at.backend);
  at.backend.create = async (context, object, options) => {
    if (object.metadata.name.startsWith('held')) await released.promise;
    return create(context, object, options);
  };
});
afterEach(async () => {
  release();
  tenant.destroy();
  await at[Symbol.asyncDispose]();
});

interface Sent {
  sent: Promise<unknown>;
  response: Promise<IncomingMessage>;
}

function post(name: string): Sent {
  const body = JSON.stringify(configMap(name, { k: 'v' }));
  const { host, port } = at.server;
  const headers = { 'content-length': body.length };
  const outgoing = request({ host, port, agent: tenant, method: 'POST', path: CONFIG_MAPS, headers });
  const sent = once(outgoing, 'socket').then(([socket]) => once(socket as TLSSocket, 'secureConnect'));
  outgoing.end(body);
  const response = once(outgoing, 'response').then(([incoming]) => (incoming as IncomingMessage).resume());
  return { sent, response };
}

/** Sends CROWD requests that hang. Calls `onRefused` for each response 429. Resolves when all requests are sent. */
async function sendCrowd(onRefused: (response: IncomingMessage) => void): Promise<Promise<IncomingMessage>[]> {
  const responses: Promise<IncomingMessage>[] = [];
  while (responses.length < CROWD) {
    const batch = Array.from({ length: BATCH }, (_, index) => post(`held-${responses.length + index}`));
    for (const { response } of batch) {
      responses.push(response);
      void response.then((incoming) => {
        if (incoming.statusCode === 429) onRefused(incoming);
      });
    }
    await Promise.all(batch.map(({ sent }) => sent));
  }
  return responses;
}

async function metricOf(name: string, labels: Record<string, string>): Promise<number> {
  const { samples = [] } = (await metrics.families()).find((family) => family.name === name) ?? {};
  return (
    samples.find((sample) => Object.entries(labels).every(([key, value]) => sample.labels[key] === value))?.value ?? 0
  );
}

test('while 200 requests of a user hang, administrators, components and another user are served, and most of them get 429', async () => {
  const others = await Promise.all([
    agentFor(at, 'system:node:n', { organization: 'system:nodes' }),
    agentFor(at, 'system:kube-scheduler'),
    agentFor(at, 'another'),
    agentFor(at, 'root', { organization: 'system:masters' }),
  ]);
  let longest = 0;
  const serveOthers = async (): Promise<void> => {
    for (const agent of others) {
      const before = process.threadCpuUsage();
      expect(await at.call('GET', PODS, { agent })).toMatchObject({ code: 200 });
      expect((await at.call('DELETE', `${CONFIG_MAPS}/none`, { agent })).code).toBe(404);
      const { user, system } = process.threadCpuUsage(before);
      longest = Math.max(longest, (user + system) / 1000);
    }
  };
  await serveOthers();
  longest = 0;
  const refused: IncomingMessage[] = [];
  const allRefused = Promise.withResolvers<void>();
  let over = false;
  const crowd = sendCrowd((response) => {
    if (refused.push(response) === CROWD - IN_FLIGHT - QUEUED) allRefused.resolve();
  });
  void allRefused.promise.then(() => {
    over = true;
  });
  while (!over) await serveOthers();
  expect(longest).toBeLessThan(WAIT_MILLIS);
  expect(refused[0]?.headers['retry-after']).toBe('1');
  expect(await metricOf('apiserver_current_inflight_requests', { request_kind: 'mutating' })).toBe(IN_FLIGHT);
  expect(await metricOf('apiserver_current_inqueue_requests', { request_kind: 'mutating' })).toBe(QUEUED);
  const dropped = { component: 'apiserver', verb: 'POST', resource: 'configmaps', code: '429' };
  expect(await metricOf('apiserver_request_terminations_total', dropped)).toBe(CROWD - IN_FLIGHT - QUEUED);
  await serveOthers();
  release();
  const codes = await Promise.all((await crowd).map(async (response) => (await response).statusCode));
  expect(codes.filter((code) => code === 201)).toHaveLength(IN_FLIGHT + QUEUED);
  expect(codes.filter((code) => code === 429)).toHaveLength(CROWD - IN_FLIGHT - QUEUED);
  await serveOthers();
  expect(await metricOf('apiserver_current_inflight_requests', { request_kind: 'mutating' })).toBe(0);
  for (const agent of others) agent.destroy();
});

test('a user whose bodies do not arrive delays no other user', async () => {
  const { host, port } = at.server;
  const slow = Array.from({ length: IN_FLIGHT + 1 }, () => {
    const outgoing = request({
      host,
      port,
      agent: tenant,
      method: 'POST',
      path: CONFIG_MAPS,
      headers: { 'content-length': 9 },
    });
    outgoing.on('error', () => undefined).write('{');
    return outgoing;
  });
  const sockets = await Promise.all(slow.map(async (outgoing) => (await once(outgoing, 'socket'))[0] as TLSSocket));
  await Promise.all(sockets.map((socket) => once(socket, 'secureConnect')));
  const another = await agentFor(at, 'another');
  expect((await at.call('GET', PODS, { agent: another })).code).toBe(200);
  expect((await at.call('GET', PODS)).code).toBe(200);
  for (const outgoing of slow) outgoing.destroy();
  another.destroy();
});
