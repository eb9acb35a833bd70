/**
 * Measures Services: throughput and latency through a cluster IP compared with the Pod's address, the rules for many Services, and the
 * change of one endpoint among them compared with the change of one element. The rules are in a network namespace of their own, and packets
 * stay on loopback and in namespaces.
 */

import { deleteTable, openTable } from '../src/network/nftables/table.ts';
import { endpoint, serviceOf, sliceOf } from '../src/network/proxy/proxy-fixture.ts';
import { ServicesSection } from '../src/network/proxy/services-section.ts';
import { runCommandOk } from '../src/platform/processes.ts';
import { createNetworkNamespace } from '../test/support/network-namespace.ts';
import { createRoutedNetwork, POD_CIDRS } from '../test/support/routed-network.ts';
import { servicesOfEngine } from './service-engine.ts';

const SERVICES = 5000;
const ENDPOINTS = 10;
const TRIES = 15;

const { signal } = new AbortController();
const NODE = {
  nodeName: 'n1',
  zone: undefined,
  podCidrs: POD_CIDRS,
  serviceCidrs: ['10.96.0.0/16'],
  reservedIps: [],
  api: { ips: ['127.0.0.1'], port: 6443 },
};

const median = (values: number[]): number => values.sort((a, b) => a - b)[Math.floor(values.length / 2)] as number;
const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(0)} MiB`;

async function millisOf(act: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await act();
  return performance.now() - began;
}

const clusterIp = (index: number): string => `10.96.${index >> 8}.${index & 255}`;
const podIp = (index: number): string => `10.${128 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`;

/** `last` selects the address of its last endpoint. */
function take(section: ServicesSection, index: number, last = 0): void {
  const ip = clusterIp(index);
  const service = serviceOf(`s${index}`, { clusterIP: ip, clusterIPs: [ip] });
  const endpoints = Array.from({ length: ENDPOINTS }, (_, each) =>
    endpoint(podIp(index * ENDPOINTS + each + (each === ENDPOINTS - 1 ? last * SERVICES * ENDPOINTS : 0))),
  );
  section.update(`default/s${index}`, service, [sliceOf(service, endpoints)]);
}

async function manyServices(): Promise<void> {
  await using namespace = await createNetworkNamespace();
  const { name } = namespace;
  globalThis.gc?.();
  const before = process.memoryUsage().heapUsed;
  const section = new ServicesSection(NODE);
  const table = openTable({ name: 'lifepod-0', namespace: name, signal });
  const compute = await millisOf(async () => {
    for (let index = 0; index < SERVICES; index++) take(section, index);
  });
  const load = await millisOf(() => table.set('services', section.section()));
  globalThis.gc?.();
  const memory = process.memoryUsage().heapUsed - before;
  const replace = await millisOf(() =>
    openTable({ name: 'lifepod-0', namespace: name, signal }).set('services', section.section()),
  );
  console.log(`
| ${SERVICES.toLocaleString('en')} Services with ${ENDPOINTS} endpoints each | |
|---|---|
| rules computed | ${compute.toFixed(0)} ms |
| written to the kernel for the first time | ${load.toFixed(0)} ms |
| replaced after a restart | ${replace.toFixed(0)} ms |
| heap of the engine | ${mebibytes(memory)} |
`);
  await oneChange(section, table, name);
  await deleteTable({ name: 'lifepod-0', namespace: name, signal });
}

/** The changes of one endpoint take turns with changes of elements of the same table by nft(8). */
async function oneChange(section: ServicesSection, table: ReturnType<typeof openTable>, name: string): Promise<void> {
  const nft = (...commands: string[]): Promise<number> => {
    const input = commands
      .map((command) => command.replace(' ', ' element inet lifepod-0 services/cluster-ips-4 '))
      .join('\n');
    return millisOf(() => runCommandOk('ip', ['netns', 'exec', name, 'nft', '-f', '-'], { input: `${input}\n` }));
  };
  const millis: Record<'added' | 'replaced' | 'deleted' | 'endpoint', number[]> = {
    added: [],
    replaced: [],
    deleted: [],
    endpoint: [],
  };
  for (let index = 1; index <= TRIES; index++) {
    millis.added.push(await nft('add { 10.97.0.1 }'));
    millis.replaced.push(await nft('delete { 10.97.0.1 }', 'add { 10.97.0.2 }'));
    millis.deleted.push(await nft('delete { 10.97.0.2 }'));
    millis.endpoint.push(
      await millisOf(async () => {
        take(section, 2500, index % 2);
        await table.set('services', section.section());
      }),
    );
  }
  const [added, replaced, deleted, changed] = Object.values(millis).map(median) as [number, number, number, number];
  console.log(`
| one change among these | median of ${TRIES} |
|---|---|
| one element of the table, added by nft | ${added.toFixed(1)} ms |
| one element deleted | ${deleted.toFixed(1)} ms |
| one element replaced by another in one transaction | ${replaced.toFixed(1)} ms |
| one endpoint, from its EndpointSlice to the kernel | ${changed.toFixed(1)} ms |
| ratio to the replaced element | ${(changed / replaced).toFixed(2)} |
`);
}

async function traffic(): Promise<void> {
  await using network = await createRoutedNetwork(2);
  const [server, client] = network.pods;
  if (server === undefined || client === undefined) throw new Error('there are no Pods');
  const service = serviceOf('web');
  const section = new ServicesSection(NODE);
  const table = openTable({ name: 'lifepod-0', namespace: network.node.namespace.name, signal });
  section.update('default/web', service, [sliceOf(service, [endpoint(server.ip)])]);
  await table.set('services', section.section());
  await server.peer.listen('server', 8080);
  const rows: string[] = [];
  for (const what of ['roundTrip', 'connection', 'throughput'] as const) {
    const direct: number[] = [];
    const through: number[] = [];
    for (let turn = 0; turn < 5; turn++) {
      direct.push(await client.peer.measure(what, { protocol: 'tcp', address: server.ip, port: 8080 }));
      through.push(await client.peer.measure(what, { protocol: 'tcp', address: '10.96.0.1', port: 80 }));
    }
    const [a, b] = [median(direct), median(through)];
    const unit = what === 'throughput' ? 'MiB/s' : 'µs';
    rows.push(`| ${LABELS[what]} | ${a.toFixed(0)} ${unit} | ${b.toFixed(0)} ${unit} | ${(b / a).toFixed(2)} |`);
  }
  console.log(`
| TCP | Pod | cluster IP | ratio |
|---|---|---|---|
${rows.join('\n')}
`);
}

const LABELS = {
  roundTrip: 'a message and its answer on an open connection',
  connection: 'a new connection, a message and its answer',
  throughput: 'data in one direction on one connection',
};

export async function services(): Promise<void> {
  await traffic();
  await manyServices();
  await servicesOfEngine();
}
