/** 2,000 clients of one user send requests that are heavy or hang. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { type Agent, request } from 'node:https';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { agentFor } from '../../../src/apiserver/server-fixture.ts';
import type { Crowd } from '../../support/crowd.ts';
import { pod, WAIT } from '../../support/manifests.ts';
import { lifepod, useOwnEngine } from '../../support/own-engine.ts';
import { adminOf } from '../../support/raw-streams.ts';

const CLIENTS = 2000;
/** A heavy request lists these objects: 6 MB together. */
const OBJECTS = 3000;
const OBJECT_CHARS = 2000;
const LIST = '/api/v1/namespaces/crowd/configmaps';
/** The maximum durations of a request of another user, and of a run of kubectl, which includes the start of its process. */
const REQUEST_MILLIS = 2000;
const KUBECTL_MILLIS = 5000;
const ROUNDS = 10;

let tenant: Agent;
let others: Agent[];

useOwnEngine();
beforeAll(async () => {
  const pki = { caCertificate: adminOf(lifepod.kubeconfig).ca.toString() };
  const agentOf = (name: string, organization?: string): Promise<Agent> =>
    agentFor({ dataDir: lifepod.dataDir, pki }, name, organization === undefined ? {} : { organization });
  tenant = await agentOf('tenant');
  others = [await agentOf('another'), await agentOf('system:node:other', 'system:nodes')];
  await lifepod.kubectlOk('create', 'namespace', 'crowd');
  await lifepod.kubectlOk('-n', 'crowd', 'create', 'rolebinding', 'tenant', '--clusterrole=edit', '--user=tenant');
  const view = [
    'create',
    'clusterrolebinding',
    'others',
    '--clusterrole=view',
    '--user=another',
    '--group=system:nodes',
  ];
  await lifepod.kubectlOk(...view);
  const data = { text: 'x'.repeat(OBJECT_CHARS) };
  const items = Array.from({ length: OBJECTS }, (_, index) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: `c${index}`, namespace: 'crowd' },
    data,
  }));
  await lifepod.apply({ kind: 'List', items });
});
afterAll(() => {
  for (const agent of [tenant, ...(others ?? [])]) agent?.destroy();
});

/** Resolves once all clients of the crowd have sent a request. */
async function startCrowd(options: Pick<Crowd, 'method' | 'path' | 'endlessBody'>) {
  const { host, port, ca } = adminOf(lifepod.kubeconfig);
  const { cert, key } = tenant.options as { cert: string; key: string };
  const crowd: Crowd = { host, port, ca: ca.toString(), cert, key, clients: CLIENTS, ...options };
  const child = spawn(process.execPath, [join(import.meta.dirname, '../../support/crowd.ts')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  child.stdin.write(`${JSON.stringify(crowd)}\n`);
  expect((await lines.next()).value).toBe('sent');
  return async (): Promise<Record<string, number>> => {
    child.stdin.end();
    const { value = '{}' } = await lines.next();
    return JSON.parse(value) as Record<string, number>;
  };
}

async function timeOf(agent: Agent): Promise<number> {
  const { host, port } = adminOf(lifepod.kubeconfig);
  const begun = performance.now();
  const outgoing = request({ host, port, agent, path: '/api/v1/namespaces/default/pods' }).end();
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  response.resume();
  await once(response, 'end');
  expect(response.statusCode).toBe(200);
  return performance.now() - begun;
}

async function timeOfKubectl(...args: string[]): Promise<number> {
  const begun = performance.now();
  await lifepod.kubectlOk(...args);
  return performance.now() - begun;
}

test.each([
  ['that list thousands of objects', { method: 'GET', path: LIST, endlessBody: '' }],
  ['whose bodies do not end', { method: 'POST', path: LIST, endlessBody: '{"data":{' }],
])('while 2,000 clients of a user send requests %s, others are served promptly', async (_what, options) => {
  const name = options.method.toLowerCase();
  const stop = await startCrowd(options);
  const [times, ofKubectl] = [[], []] as [number[], number[]];
  for (let round = 0; round < ROUNDS; round++) {
    for (const agent of others) times.push(await timeOf(agent));
    ofKubectl.push(await timeOfKubectl('get', 'pods'));
  }
  await lifepod.apply(pod(name, { app: [{ name: 'app', script: WAIT }] }));
  const ready = await timeOfKubectl('wait', '--for=condition=Ready', `pod/${name}`, '--timeout=60s');
  const codes = await stop();
  const shown = (list: number[]): string => list.map((millis) => millis.toFixed(0)).join(' ');
  console.log(
    `crowd ${options.method}: other users waited ${shown(times)} ms, kubectl ${shown(ofKubectl)} ms, Ready after ${ready.toFixed(0)} ms; ${JSON.stringify(codes)}`,
  );
  expect(Math.max(...times)).toBeLessThan(REQUEST_MILLIS);
  expect(Math.max(...ofKubectl)).toBeLessThan(KUBECTL_MILLIS);
  expect(codes['429'] ?? 0).toBeGreaterThan(0);
});
