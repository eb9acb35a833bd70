import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { EndpointSlice, Endpoints, Service } from '../../../src/api/generated/types.ts';
import { networkNames } from '../../../src/network/pod-network/names.ts';
import { podRanges } from '../../../src/network/pod-network/ranges.ts';
import { runCommand, runCommandOk } from '../../../src/platform/processes.ts';
import type { Reached } from '../../support/in-cluster-client.ts';
import { launch, REPOSITORY, type RunningLifepod, startLifepod } from '../../support/lifepod.ts';
import { createNeighbor, type Neighbor } from '../../support/neighbor.ts';
import { ask } from '../../support/network-namespace.ts';
import { NODE_JS, nodeCommand } from '../../support/node-in-pod.ts';
import { lifepod, record, recordAgain, useOwnEngine } from '../../support/own-engine.ts';
import { isReady } from '../../support/pods.ts';

useOwnEngine();

const PROGRAM = 'in-cluster-client.ts';
/** The result if the server answers. It does not matter whether the server accepts the token. */
const ANSWERED = { status: expect.toBeOneOf([200, 401, 403]), kind: expect.toBeOneOf(['PodList', 'Status']) };
const NAMES = ['kubernetes', 'kubernetes.default', 'kubernetes.default.svc', 'kubernetes.default.svc.cluster.local'];

let neighbor: Neighbor;
let machineIp: string;
/** A folder with the certificate of the authority and a token. */
let credentials: string;

interface ApiPlaces {
  clusterIp: string;
  gateway: string;
  port: number;
}

async function placesOf(engine: RunningLifepod): Promise<ApiPlaces> {
  const { spec } = await engine.get<Service>('service', 'kubernetes');
  const { subsets } = await engine.get<Endpoints>('endpoints', 'kubernetes');
  const [{ addresses, ports } = {}] = subsets ?? [];
  return { clusterIp: spec?.clusterIP ?? '', gateway: addresses?.[0]?.ip ?? '', port: ports?.[0]?.port ?? 0 };
}

const urlsOf = ({ clusterIp, gateway, port }: ApiPlaces): string[] => [
  `https://${clusterIp}`,
  `https://${gateway}:${port}`,
];

const parsed = (output: string): Reached[] =>
  output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Reached);

async function fromPod(name: string, urls: string[]): Promise<Reached[]> {
  return parsed(await lifepod.execOk(name, '--', ...nodeCommand(PROGRAM, ...urls)));
}

async function fromOutside(urls: string[], namespace?: string, serverName?: string): Promise<Reached[]> {
  const command = [process.execPath, join(REPOSITORY, 'test/support', PROGRAM), ...urls];
  const [program = '', ...args] = namespace === undefined ? command : ['ip', 'netns', 'exec', namespace, ...command];
  const names = serverName === undefined ? {} : { SERVER_NAME: serverName };
  return parsed(await runCommandOk(program, args, { env: { ...process.env, CREDENTIALS: credentials, ...names } }));
}

const pod = (name: string, command: string[], spec: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels: { app: name } },
  spec: {
    containers: [{ name: 'app', image: 'busybox:1.28', command, volumeMounts: NODE_JS.mounts }],
    volumes: NODE_JS.volumes,
    terminationGracePeriodSeconds: 0,
    ...spec,
  },
});

beforeAll(async () => {
  const wait = ['sleep', '36000'];
  await lifepod.apply(pod('client', wait));
  await lifepod.apply(pod('on-host', wait, { hostNetwork: true, dnsPolicy: 'ClusterFirstWithHostNet' }));
  await lifepod.apply(pod('peer', wait));
  for (const name of ['client', 'on-host', 'peer']) await record.until(name, isReady);
  credentials = join(lifepod.dataDir, 'test-credentials');
  mkdirSync(credentials);
  for (const file of ['ca.crt', 'token']) {
    const path = `/var/run/secrets/kubernetes.io/serviceaccount/${file}`;
    writeFileSync(join(credentials, file), await lifepod.execOk('client', '--', 'cat', path));
  }
  neighbor = await createNeighbor();
  ({ machineIp } = neighbor);
});
afterAll(() => neighbor?.[Symbol.asyncDispose]());

test('the Service kubernetes leads to the address of the node in the Pod range, and its endpoints are restored', async () => {
  const { gateway, port } = await placesOf(lifepod);
  const node = await lifepod.get<{ spec: { podCIDR: string } }>('node', lifepod.nodeName);
  expect(gateway).toBe(podRanges(node.spec.podCIDR)[0].gateway);
  expect((await lifepod.get<Service>('service', 'kubernetes')).spec?.ports?.[0]?.targetPort).toBe(port);
  expect(await lifepod.kubectlOk('get', 'endpoints', 'kubernetes')).toContain(`${gateway}:${port}`);
  const slice = () => lifepod.get<EndpointSlice>('endpointslice', 'kubernetes');
  const before = await slice();
  expect(before.endpoints?.map(({ addresses }) => addresses)).toEqual([[gateway]]);
  await lifepod.delete('endpoints,endpointslices', 'kubernetes');
  await expect
    .poll(() => slice().catch(() => undefined), { timeout: 20_000 })
    .toMatchObject({ endpoints: before.endpoints });
  expect(await placesOf(lifepod)).toMatchObject({ gateway, port });
});

test.each(['client', 'on-host'])(
  'the Pod %s reaches the API by its names, its cluster IP and the environment, with the mounted certificate and token',
  async (name) => {
    const urls = [...NAMES.map((host) => `https://${host}`), ...urlsOf(await placesOf(lifepod)), 'env'];
    await expect.poll(() => fromPod(name, urls), { timeout: 30_000 }).toEqual(urls.map(() => ANSWERED));
  },
);

test.each(['client', 'on-host'])(
  'the Pod %s lists Pods where its Role allows it, and nothing elsewhere',
  async (name) => {
    const url = (path: string): string => `https://kubernetes.default.svc/api/v1/namespaces/${path}`;
    const urls = [url('default/pods'), url('kube-system/pods'), url('default/secrets')];
    const refused = { status: 403, kind: 'Status' };
    expect(await fromPod(name, urls)).toEqual([refused, refused, refused]);
    await lifepod.kubectlOk('create', 'role', name, '--verb=list', '--resource=pods');
    await lifepod.kubectlOk('create', 'rolebinding', name, `--role=${name}`, '--serviceaccount=default:default');
    const listed = [{ status: 200, kind: 'PodList' }, refused, refused];
    await expect.poll(() => fromPod(name, urls), { timeout: 30_000 }).toEqual(listed);
    await lifepod.delete('rolebinding', name);
    await expect.poll(() => fromPod(name, urls), { timeout: 30_000 }).toEqual([refused, refused, refused]);
  },
);

test('the token of a Pod is refused when the Pod is gone, also if another Pod sends it', async () => {
  const mounted = '/var/run/secrets/kubernetes.io/serviceaccount';
  await lifepod.apply(pod('gone', ['sleep', '36000']));
  await record.until('gone', isReady);
  const token = await lifepod.execOk('gone', '--', 'cat', `${mounted}/token`);
  // containerd discards input that arrives after the command has closed its output, so tee keeps the output open.
  const take = `mkdir /taken && cp ${mounted}/ca.crt /taken && tee /taken/token`;
  const url = 'https://kubernetes.default.svc';
  const withToken = async (name: string): Promise<Reached[]> =>
    parsed(await lifepod.execOk(name, '--', 'env', 'CREDENTIALS=/taken', ...nodeCommand(PROGRAM, url)));
  for (const name of ['client', 'on-host']) {
    expect(await lifepod.kubectlInput(token, 'exec', '-i', name, '--', 'sh', '-c', take)).toMatchObject({
      code: 0,
      stdout: token,
    });
    expect(await withToken(name)).toEqual([{ status: 403, kind: 'Status' }]);
  }
  await lifepod.delete('pod', 'gone', '--now');
  for (const name of ['client', 'on-host']) expect(await withToken(name)).toEqual([{ status: 401, kind: 'Status' }]);
});

test('a program of the machine reaches the API by its cluster IP', async () => {
  const urls = urlsOf(await placesOf(lifepod));
  expect(await fromOutside(urls)).toEqual(urls.map(() => ANSWERED));
});

test('a NetworkPolicy that allows no traffic of a Pod leaves the API reachable, because it is on the node of the Pod', async () => {
  const policy = { podSelector: {}, policyTypes: ['Ingress', 'Egress'] };
  await lifepod.apply({
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: 'none' },
    spec: policy,
  });
  const url = `https://${record.now('peer').status?.podIP}:1`;
  await expect.poll(() => fromPod('client', [url]), { timeout: 30_000 }).toEqual([{ error: 'timeout' }]);
  expect(await fromPod('client', ['https://kubernetes.default.svc'])).toEqual([ANSWERED]);
  await lifepod.delete('networkpolicy', 'none');
  await expect.poll(() => fromPod('client', [url]), { timeout: 30_000 }).toEqual([{ error: 'ECONNREFUSED' }]);
});

test('a neighbor of the machine that routes to the API through the machine does not reach it', async () => {
  const places = await placesOf(lifepod);
  const { gateway } = places;
  await using server = createServer((socket) => socket.end('reached')).listen(0, gateway);
  await once(server, 'listening');
  // This server shows that the neighbor's packets reach the address of the gateway.
  expect(await ask(neighbor.name, gateway, (server.address() as AddressInfo).port)).toBe('reached');
  const urls = [...urlsOf(places), `https://${machineIp}:${places.port}`];
  expect(await fromOutside(urls, neighbor.name)).toEqual([
    { error: 'timeout' },
    { error: 'timeout' },
    { error: 'ECONNREFUSED' },
  ]);
});

test('a neighbor of the machine that routes to the cluster DNS gets no answer, and the machine gets one', async () => {
  const { clusterIp } = await placesOf(lifepod);
  const dns = (await lifepod.get<Service>('service', 'kube-dns', '-n', 'kube-system')).spec?.clusterIP ?? '';
  const program = `
    const resolver = new (require('node:dns').promises.Resolver)({ timeout: 1000, tries: 1 });
    resolver.setServers(['${dns}']);
    resolver.resolve4('kubernetes.default.svc.cluster.local').then(console.log, ({ code }) => console.log(code));`;
  const resolve = async (...prefix: string[]): Promise<string> => {
    const [command = '', ...args] = [...prefix, process.execPath, '-e', program];
    return (await runCommandOk(command, args)).trim();
  };
  expect(await resolve()).toBe(`[ '${clusterIp}' ]`);
  expect(await resolve('ip', 'netns', 'exec', neighbor.name)).toBe('ETIMEOUT');
});

test('the Pods of another engine do not reach the API, and reach that of their own engine', async () => {
  const other = await startLifepod();
  try {
    const [own, foreign] = await Promise.all([placesOf(lifepod), placesOf(other)]);
    const reached = await fromPod('client', [...urlsOf(own), ...urlsOf(foreign)]);
    expect(reached.slice(0, 2)).toEqual([ANSWERED, ANSWERED]);
    for (const { status } of reached.slice(2)) expect(status).toBeUndefined();
  } finally {
    await other.stop();
  }
});

test('connections fail while the engine is dead, and work when it runs again', async () => {
  const url = 'https://kubernetes.default.svc';
  const loop = `while :; do ${nodeCommand(PROGRAM, url).join(' ')}; sleep 0.2; done`;
  await lifepod.apply(pod('loop', ['sh', '-c', loop]));
  await record.until('loop', isReady);
  const lines = () => lifepod.kubectlOk('logs', 'loop');
  await expect.poll(lines, { timeout: 60_000 }).toMatch(/"status"/);
  await lifepod.kill('SIGKILL');
  await lifepod.up();
  await recordAgain();
  await expect.poll(lines, { timeout: 60_000 }).toMatch(/"status".*"ECONNREFUSED".*"status"/s);
  expect(await fromPod('on-host', [url])).toEqual([ANSWERED]);
  await lifepod.delete('pod', 'loop', '--now');
});

const restart = async (...options: string[]): Promise<void> => {
  await lifepod.kill('SIGTERM');
  await lifepod.up(options);
  await recordAgain();
};

test('--bind-address opens the API to other machines, and --tls-san adds names to its certificate, also at later starts', async () => {
  const authority = () => readFileSync(join(lifepod.dataDir, 'pki/ca.crt'), 'utf8');
  const before = authority();
  await restart('--bind-address', machineIp, '--tls-san', 'api.example.com');
  const { port, gateway } = await placesOf(lifepod);
  const url = `https://${machineIp}:${port}`;
  const atName = () => fromOutside([url], neighbor.name, 'api.example.com');
  expect(await fromOutside([url], neighbor.name)).toEqual([ANSWERED]);
  expect(await atName()).toEqual([ANSWERED]);
  expect(await fromOutside([`https://${gateway}:${port}`], neighbor.name)).toEqual([{ error: 'timeout' }]);
  await restart();
  expect(await atName()).toEqual([ANSWERED]);
  expect(await fromPod('client', ['https://kubernetes.default.svc'])).toEqual([ANSWERED]);
  await restart('--tls-san', '', '--bind-address', '0.0.0.0');
  expect(await atName()).toEqual([{ error: 'ERR_TLS_CERT_ALTNAME_INVALID' }]);
  await restart('--bind-address', '');
  expect(await fromOutside([url], neighbor.name)).toEqual([{ error: 'ECONNREFUSED' }]);
  expect(authority()).toBe(before);
});

/** Resolves with the connections since the start of the engine, by protocol. */
async function connections(): Promise<Record<string, number>> {
  const text = await lifepod.kubectlOk('get', '--raw', '/metrics');
  const counted = text.matchAll(/^lifepod_apiserver_connections_total\{protocol="(.*)"\} (\d+)$/gm);
  return { 'HTTP/1.1': 0, ...Object.fromEntries([...counted].map(([, protocol, count]) => [protocol, Number(count)])) };
}

test('kubectl uses HTTP/2, and HTTP/1.1 for streams of containers or if HTTP/2 is disabled', async () => {
  const before = await connections();
  await lifepod.kubectlOk('wait', '--for=condition=Ready', 'pod/client');
  await lifepod.kubectlOk('logs', 'client');
  const watched = await connections();
  expect(watched['HTTP/1.1']).toBe(before['HTTP/1.1']);
  expect(watched['HTTP/2']).toBeGreaterThanOrEqual((before['HTTP/2'] ?? 0) + 3);
  await lifepod.kubectlOk('exec', 'client', '--', 'true');
  expect((await connections())['HTTP/1.1']).toBeGreaterThan(watched['HTTP/1.1'] ?? 0);
  await restart('--disable-http2-serving');
  expect(Object.keys(await connections())).toEqual(['HTTP/1.1']);
});

test('an address that the machine does not have is refused, and not recorded', async () => {
  await lifepod.kill('SIGTERM');
  const refused = await launch(['up', '--detach', '--data-dir', lifepod.dataDir, '--bind-address', '192.0.2.77']);
  expect(refused.stderr).toContain(
    'this machine does not have the address 192.0.2.77: choose another with --bind-address',
  );
  await lifepod.up([]);
  await recordAgain();
});

test('no address of the API is left after down', async () => {
  const { clusterIp, gateway } = await placesOf(lifepod);
  const addresses = async (): Promise<string> => (await runCommand('ip', ['address', 'show'])).stdout;
  for (const ip of [clusterIp, gateway]) expect(await addresses()).toContain(` ${ip}/`);
  await lifepod.cliOk('down');
  for (const ip of [clusterIp, gateway]) expect(await addresses()).not.toContain(` ${ip}/`);
  const { table } = networkNames({ dataDir: lifepod.dataDir, instance: lifepod.dataDir });
  expect((await runCommand('nft', ['list', 'tables'])).stdout).not.toContain(table);
});
