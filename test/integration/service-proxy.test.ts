import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CoreV1Event, Endpoint, EndpointSlice, Service, ServiceSpec } from '../../src/api/generated/types.ts';
import { ENDPOINT_SLICES, EVENTS, NODES, SERVICE_CIDRS, SERVICES } from '../../src/api/resources.ts';
import { type RegistryBackend, registryBackend, withInformers } from '../../src/client/registry-fixture.ts';
import { clientOf } from '../../src/client/typed-client.ts';
import { type IpRange, parseIpRange } from '../../src/machinery/ip.ts';
import type { KubeObject } from '../../src/machinery/meta.ts';
import { openTable } from '../../src/network/nftables/table.ts';
import { otherServiceRanges } from '../../src/network/proxy/other-engines.ts';
import { startProxy } from '../../src/network/proxy/proxy.ts';
import { endpoint, portOf, serviceOf, sliceOf } from '../../src/network/proxy/proxy-fixture.ts';
import { systemTimers } from '../../src/platform/node-js.ts';
import { silentLog } from '../../src/platform/silent-log.ts';
import { createRoutedNetwork, type Place, POD_CIDRS, type RoutedNetwork } from '../support/routed-network.ts';

let network: RoutedNetwork;
let backend: RegistryBackend;
let proxy: AbortController;

beforeAll(async () => {
  network = await createRoutedNetwork(3);
  for (const [index, { peer }] of network.pods.entries()) await peer.listen(`pod${index}`, 8080);
  backend = await registryBackend({ timers: systemTimers(), namespaces: [] });
  await start();
});
afterAll(async () => {
  proxy?.abort();
  await network[Symbol.asyncDispose]();
});

async function start(): Promise<void> {
  proxy = new AbortController();
  const { signal } = proxy;
  const namespace = network.node.namespace.name;
  const parts = { client: clientOf(backend), timers: systemTimers(), log: silentLog, signal };
  const { written } = startProxy({
    ...withInformers(parts),
    table: openTable({ name: 'lifepod-0', namespace, signal }),
    namespace,
    nodeName: 'n1',
    podCidrs: POD_CIDRS,
    serviceCidrs: ['10.96.0.0/24'],
    reservedIps: [],
    api: { ips: ['127.0.0.1'], port: 6443 },
  });
  await written;
}

async function create(name: string, spec: ServiceSpec): Promise<Service> {
  const { metadata, ...service } = serviceOf(name, spec);
  const { clusterIP: _, clusterIPs: __, ...rest } = service.spec ?? {};
  const object = { ...service, spec: { ...rest, ...spec }, metadata: { name, namespace: metadata.namespace } };
  return (await backend.create(SERVICES, 'default', object as KubeObject)) as unknown as Service;
}
async function serve(service: Service, ...pods: number[]): Promise<void> {
  await setEndpoints(
    service,
    pods.map((index) => endpoint(network.pods[index]?.ip as string)),
  );
}
const setEndpoints = (service: Service, endpoints: Endpoint[]): Promise<EndpointSlice> =>
  backend.set<EndpointSlice & KubeObject>(ENDPOINT_SLICES, {
    ...sliceOf(service, endpoints),
    addressType: 'IPv4',
  } as never);

const UDP = [portOf(53, { protocol: 'UDP' })];
const client = (): Place => network.pods[2] as Place;

test('a UDP client that keeps its port reaches a new endpoint as soon as its own one is removed', async () => {
  const service = await create('dns', { type: 'NodePort', ports: UDP });
  await serve(service, 0);
  const address = service.spec?.clusterIP as string;
  const port = service.spec?.ports?.[0]?.nodePort as number;
  const ask = () => client().peer.ask({ protocol: 'udp', address, port: 53 });
  await expect.poll(ask, { timeout: 20_000 }).toBe('pod0 10.99.0.12');
  const inside = await client().peer.open({ protocol: 'udp', address, port: 53 });
  const outside = await network.outside.peer.open({ protocol: 'udp', address: network.node.ip, port });
  expect(await inside.say()).toBe('pod0 10.99.0.12');
  expect(await outside.say()).toBe('pod0 10.99.0.1');
  await serve(service, 1);
  await expect.poll(() => inside.say(), { timeout: 20_000 }).toBe('pod1 10.99.0.12');
  await expect.poll(() => outside.say(), { timeout: 20_000 }).toBe('pod1 10.99.0.1');
  await serve(service);
  await expect.poll(() => inside.say(), { timeout: 20_000 }).toBe('ECONNREFUSED');
  await serve(service, 0);
  await expect.poll(() => inside.say(), { timeout: 20_000 }).toBe('pod0 10.99.0.12');
  await inside.close();
  await outside.close();
});

test('a UDP flow keeps an endpoint that terminates until the endpoint no longer serves', async () => {
  const service = await create('leaving', { ports: UDP });
  const [first, second] = network.pods.map(({ ip }) => ip) as [string, string];
  await setEndpoints(service, [endpoint(first)]);
  const to = { protocol: 'udp', address: service.spec?.clusterIP as string, port: 53 } as const;
  await expect.poll(() => client().peer.ask(to), { timeout: 20_000 }).toBe('pod0 10.99.0.12');
  const other = await create('after-leaving', { ports: UDP });
  await serve(other, 0);
  const toOther = { ...to, address: other.spec?.clusterIP as string };
  await expect.poll(() => client().peer.ask(toOther), { timeout: 20_000 }).toBe('pod0 10.99.0.12');
  const [flow, examined] = await Promise.all([client().peer.open(to), client().peer.open(toOther)]);
  expect([await flow.say(), await examined.say()]).toEqual(['pod0 10.99.0.12', 'pod0 10.99.0.12']);
  const terminating = { ready: false, terminating: true };
  await setEndpoints(service, [endpoint(first, { ...terminating, serving: true }), endpoint(second)]);
  // New flows reach the second Pod only.
  await expect.poll(() => client().peer.ask(to), { timeout: 20_000 }).toBe('pod1 10.99.0.12');
  expect(await client().peer.ask(to)).toBe('pod1 10.99.0.12');
  // A flow of another Service shows when the entries have been examined.
  await serve(other, 1);
  await expect.poll(() => examined.say(), { timeout: 20_000 }).toBe('pod1 10.99.0.12');
  expect(await flow.say()).toBe('pod0 10.99.0.12');
  await setEndpoints(service, [endpoint(first, terminating), endpoint(second)]);
  await expect.poll(() => flow.say(), { timeout: 20_000 }).toBe('pod1 10.99.0.12');
  await flow.close();
  await examined.close();
});

test('a change of endpoints while no proxy runs applies at the next start', async () => {
  const service = await create('web', { ports: [portOf(80)] });
  await serve(service, 0);
  const to = { protocol: 'tcp', address: service.spec?.clusterIP as string, port: 80 } as const;
  await expect.poll(() => client().peer.ask(to), { timeout: 20_000 }).toBe('pod0 10.99.0.12');
  const connection = await client().peer.open(to);
  proxy.abort();
  await serve(service, 1);
  expect(await connection.say()).toBe('pod0 10.99.0.12');
  expect(await client().peer.ask(to)).toBe('pod0 10.99.0.12');
  await start();
  expect(await client().peer.ask(to)).toBe('pod1 10.99.0.12');
  expect(await connection.say()).toBe('pod0 10.99.0.12');
  await connection.close();
});

test('hints apply to the zone that the label of the node names', async () => {
  const service = await create('zones', { ports: [portOf(80)] });
  const zones = [['a'], ['b']];
  await setEndpoints(
    service,
    zones.map((names, index) => endpoint(network.pods[index]?.ip as string, { zones: names })),
  );
  const node = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'n1', labels: { 'topology.kubernetes.io/zone': 'b' } },
  };
  await backend.create(NODES, undefined, node);
  const to = { protocol: 'tcp', address: service.spec?.clusterIP as string, port: 80 } as const;
  const answers = async (): Promise<string[]> => {
    const all = await Promise.all(Array.from({ length: 16 }, () => client().peer.ask(to)));
    return [...new Set(all)];
  };
  await expect.poll(answers, { timeout: 20_000 }).toEqual(['pod1 10.99.0.12']);
});

test('a Service has an Event if its node port is in use by a program or by another engine of the machine', async () => {
  const { namespace, peer } = network.node;
  await peer.listen('program', 30_061);
  const fromOutside = () => network.outside.peer.ask({ protocol: 'tcp', address: network.node.ip, port: 30_061 });
  expect(await fromOutside()).toBe('program 192.0.2.2');
  const other = 'inet lifepod-1';
  const ports = ['services/node-ports-4', 'services/unserved-node-ports-4', 'host-ports/ports-ip'].map(
    (map, index) => `
      add map ${other} ${map} { type inet_proto . inet_service : verdict; }
      add element ${other} ${map} { tcp . ${30_062 + index} : drop }`,
  );
  await namespace.runOk('nft', ['-f', '-'], `add table ${other}${ports.join('')}\n`);
  for (const port of [30_061, 30_062, 30_063, 30_064, 30_065])
    await create(`port-${port}`, { type: 'NodePort', ports: [portOf(80, { nodePort: port })] });
  const events = () =>
    (backend.objects(EVENTS) as CoreV1Event[]).map(
      ({ reason, involvedObject, message }) => `${involvedObject.name} ${reason}: ${message}`,
    );
  const ofEngine = (port: number): string =>
    `port-${port} PortConflict: another engine of lifepod on this machine, with the nftables table lifepod-1, also has the node port ` +
    `TCP/${port}: only one of them gets the connections, usually the one that was started last; use another port for one of them`;
  await expect
    .poll(() => events().sort(), { timeout: 20_000 })
    .toEqual([
      expect.stringMatching(
        /^port-30061 PortConflict: connections to the node port TCP\/30061 reach this Service instead of the program \S+ \(process \d+\), which listens on \S+: use another port for one of them$/,
      ),
      ofEngine(30_062),
      ofEngine(30_063),
      ofEngine(30_064),
    ]);
  expect(await fromOutside()).toBe('ECONNREFUSED');
  await namespace.runOk('nft', ['delete', 'table', 'inet', 'lifepod-1']);
});

test('a Service that is deleted refuses connections no longer: its address belongs to none', async () => {
  const service = await create('gone', { ports: [portOf(80)] });
  const to = { protocol: 'tcp', address: service.spec?.clusterIP as string, port: 80 } as const;
  await expect.poll(() => client().peer.ask(to), { timeout: 20_000 }).toBe('ECONNREFUSED');
  await backend.remove(SERVICES, 'default', 'gone');
  await expect.poll(() => client().peer.ask(to), { timeout: 20_000 }).toBe('timeout');
});

test('an added range is like the first one: a Service gets connections, and packets to an unused address are dropped', async () => {
  const cidrs = ['10.96.0.0/16', '10.97.0.0/28'];
  const added = (cidr: string, index: number) =>
    backend.create(SERVICE_CIDRS, undefined, {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'ServiceCIDR',
      metadata: { name: `added-${index}` },
      spec: { cidrs: [cidr] },
    } as KubeObject);
  const to = (address: string) => client().peer.ask({ protocol: 'tcp', address, port: 80 });
  // Without rules, packets to the range reach a machine outside.
  await network.node.namespace.runOk('ip', ['route', 'add', '10.97.0.0/28', 'via', network.outside.ip]);
  await network.outside.namespace.runOk('ip', ['address', 'add', '10.97.0.7/32', 'dev', 'lo']);
  await network.outside.namespace.runOk('ip', ['route', 'add', POD_CIDRS[0] as string, 'via', network.node.ip]);
  expect(await to('10.97.0.7')).toBe('ECONNREFUSED');
  await Promise.all(cidrs.map(added));
  const service = await create('added', { clusterIP: '10.97.0.9', ports: [portOf(80)] });
  await serve(service, 0);
  await expect.poll(() => to('10.97.0.9'), { timeout: 20_000 }).toBe('pod0 10.99.0.12');
  for (const unused of ['10.97.0.7', '10.96.200.7', '10.96.0.200']) expect(await to(unused)).toBe('timeout');
  await backend.remove(SERVICES, 'default', 'added');
  await expect.poll(() => to('10.97.0.9'), { timeout: 20_000 }).toBe('timeout');
});

test('another engine reads the Service ranges from the rules', async () => {
  const { name: namespace } = network.node.namespace;
  const signal = AbortSignal.timeout(60_000);
  const ranges = await otherServiceRanges({ name: 'lifepod-1', namespace, signal });
  // nft(8) prints the two ranges as one, because they are adjacent.
  expect(ranges.map(({ table, text }) => [table, text])).toEqual([['lifepod-0', '10.96.0.0-10.97.0.15']]);
  const overlapping = [
    '10.95.0.0/16',
    '10.96.128.0/17',
    '10.97.0.8/29',
    '10.97.0.16/28',
    '10.96.0.0/12',
    'fd00::/64',
  ].filter((text) => ranges.some(({ overlaps }) => overlaps(parseIpRange(text) as IpRange)));
  expect(overlapping).toEqual(['10.96.128.0/17', '10.97.0.8/29', '10.96.0.0/12']);
  expect(await otherServiceRanges({ name: 'lifepod-0', namespace, signal })).toEqual([]);
});
