import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { pod, WAIT } from '../support/manifests.ts';
import { isReady } from '../support/pods.ts';
import { adminOf } from '../support/raw-streams.ts';
import { lifepod, record, testInFileNamespace as test } from '../support/shared-engine.ts';

const raw = (path: string): Promise<string> => lifepod.kubectlOk('get', '--raw', path);

test('kubectl get --raw reads every path that / lists', async () => {
  const { paths } = JSON.parse(await raw('/')) as { paths: string[] };
  expect(paths).toEqual(expect.arrayContaining(['/api', '/apis', '/healthz', '/metrics', '/openapi/v2', '/version']));
  // Each call starts a kubectl, so the test reads only one path of each kind.
  for (const path of ['/api', '/apis', '/apis/apps', '/openapi/v2', '/openapi/v3', '/version']) {
    expect(paths).toContain(path);
    expect(JSON.parse(await raw(path))).toBeInstanceOf(Object);
  }
  expect(await raw('/metrics')).toContain('# HELP');
  for (const endpoint of ['healthz', 'livez', 'readyz']) {
    expect(await raw(`/${endpoint}`)).toBe('ok');
    expect(await raw(`/${endpoint}/ping`)).toBe('ok');
    expect(await raw(`/${endpoint}?verbose&exclude=ping`)).toMatch(
      new RegExp(`^\\[\\+\\]ping excluded: ok\\n(.*\\n)*${endpoint} check passed\\n$`),
    );
  }
});

test('kubectl cluster-info dump prints the objects and logs of a namespace, to its output and to files', async () => {
  const app = { name: 'app', script: `echo written by app; ${WAIT}` };
  await lifepod.apply(pod('dumped', { app: [app] }));
  await record.until('dumped', isReady);
  const dump = await lifepod.kubectlOk('cluster-info', 'dump', '--namespaces', lifepod.namespace);
  expect(dump).toContain('"kind": "NodeList"');
  expect(dump).toContain('"name": "dumped"');
  expect(dump).toContain(
    `==== START logs for container app of pod ${lifepod.namespace}/dumped ====\nwritten by app\n==== END`,
  );
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-dump-'));
  try {
    await lifepod.kubectlOk('cluster-info', 'dump', '--all-namespaces', '--output-directory', folder);
    expect(readdirSync(join(folder, 'kube-system')).sort()).toEqual([
      'daemonsets.json',
      'deployments.json',
      'events.json',
      'pods.json',
      'replicasets.json',
      'replication-controllers.json',
      'services.json',
    ]);
    expect(readFileSync(join(folder, lifepod.namespace, 'dumped', 'logs.txt'), 'utf8')).toContain('written by app\n');
  } finally {
    rmSync(folder, { recursive: true });
  }
});

async function serve(text: string, host: string): Promise<Server> {
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => response.end(`${text} ${request.method} ${request.url} ${body}`));
  });
  await once(server.listen(0, host), 'listening');
  return server;
}

const portOf = (server: Server): number => (server.address() as AddressInfo).port;

test('the proxy of a Node serves the documents of a kubelet', async () => {
  const node = (await lifepod.kubectlOk('get', 'nodes', '-o', 'jsonpath={.items[0].metadata.name}')).trim();
  for (const proxy of [`/api/v1/nodes/${node}/proxy`, `/api/v1/nodes/${node}:10250/proxy`]) {
    expect(await raw(`${proxy}/healthz`)).toBe('ok');
    expect(JSON.parse(await raw(`${proxy}/pods`))).toMatchObject({ kind: 'PodList' });
    expect(JSON.parse(await raw(`${proxy}/stats/summary`))).toMatchObject({ node: { nodeName: node } });
    expect(await raw(`${proxy}/metrics`)).toContain('# HELP');
    expect(JSON.parse(await raw(`${proxy}/configz`))).toMatchObject({ kubeletconfig: { maxPods: 110 } });
    expect(JSON.parse(await raw(`${proxy}/runningpods/`))).toMatchObject({ kind: 'PodList' });
  }
});

test('the proxy of a Node reaches other ports of its address, but neither loopback nor the API', async () => {
  const [node = '', ip = ''] = (
    await lifepod.kubectlOk(
      'get',
      'nodes',
      '-o',
      'jsonpath={.items[0].metadata.name} {.items[0].status.addresses[?(@.type=="InternalIP")].address}',
    )
  ).split(' ');
  const [open, local] = await Promise.all([serve('hello', '0.0.0.0'), serve('secret', '127.0.0.1')]);
  try {
    const at = (port: number): string => `/api/v1/nodes/${node}:${port}/proxy/`;
    expect(await raw(`${at(portOf(open))}a?b=c`)).toBe('hello GET /a?b=c ');
    expect(await lifepod.kubectlInput('sent', 'create', '--raw', at(portOf(open)), '-f', '-')).toMatchObject({
      stdout: 'hello POST / sent',
    });
    const refused = await lifepod.kubectl('get', '--raw', at(portOf(local)));
    expect(refused.stderr).toContain(`dial tcp ${ip}:${portOf(local)}: connect: connection refused`);
    const own = await lifepod.kubectl('get', '--raw', at(adminOf(lifepod.kubeconfig).port));
    expect(own.stderr).toContain('port not allowed');
  } finally {
    open.close().closeAllConnections();
    local.close().closeAllConnections();
  }
});
