import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { EndpointSlice, Service, ServiceSpec } from '../../src/api/generated/types.ts';
import type { Section } from '../../src/network/nftables/section.ts';
import { type NftTable, openTable } from '../../src/network/nftables/table.ts';
import { hostPortRules, hostPortSection } from '../../src/network/pod-network/host-ports.ts';
import { serviceOfSlice } from '../../src/network/proxy/endpoints.ts';
import { type EndpointOptions, endpoint, portOf, serviceOf, sliceOf } from '../../src/network/proxy/proxy-fixture.ts';
import { ServicesSection } from '../../src/network/proxy/services-section.ts';
import { createRoutedNetwork, type Place, POD_CIDRS, type RoutedNetwork } from '../support/routed-network.ts';

const { signal } = new AbortController();
const RESERVED = '10.96.0.10';
const API_IP = '127.0.0.1';
const API = { ips: [API_IP], port: 30_443 };

let network: RoutedNetwork;
let table: NftTable;
let section: ServicesSection;
let known: string[] = [];

beforeAll(async () => {
  network = await createRoutedNetwork(3);
  table = openTable({ name: 'lifepod-0', namespace: network.node.namespace.name, signal });
  for (const [index, { peer }] of network.pods.entries()) await peer.listen(`pod${index}`, 8080);
  section = new ServicesSection({
    nodeName: 'n1',
    zone: 'a',
    podCidrs: POD_CIDRS,
    serviceCidrs: ['10.96.0.0/16', 'fd00:96::/112'],
    reservedIps: [RESERVED],
    api: API,
  });
  // Pods reach themselves through Services because of the rules of the Pod network.
  await table.set('pods', hairpinRules(network.pods));
});
afterAll(async () => {
  await network[Symbol.asyncDispose]();
});

const hairpinRules = (pods: readonly Place[]): Section =>
  new Map([
    [
      'hairpin',
      {
        chains: [
          {
            name: 'pods/postrouting',
            base: 'type nat hook postrouting priority srcnat; policy accept;',
            rules: pods.map(({ ip }) => `ip saddr ${ip} ip daddr ${ip} masquerade`),
          },
        ],
      },
    ],
  ]);

async function apply(services: Service[], slices: EndpointSlice[]): Promise<void> {
  const keyOf = ({ metadata }: Service): string => `${metadata.namespace}/${metadata.name}`;
  for (const key of known) if (!services.some((service) => keyOf(service) === key)) section.update(key, undefined, []);
  known = services.map(keyOf);
  let pending = known;
  while (pending.length > 0) {
    pending = pending.flatMap((key) => {
      const service = services.find((one) => keyOf(one) === key);
      return [
        ...section.update(
          key,
          service,
          slices.filter((slice) => serviceOfSlice(slice).includes(key)),
        ),
      ];
    });
  }
  await table.set('services', section.section());
}

/** The host port belongs to the first Pod; undefined: no host port. */
async function applyHostPort(hostPort: number | undefined): Promise<void> {
  const ranges = [{ family: 'IPv4', cidr: POD_CIDRS[0] }] as const;
  const pod = {
    sandboxId: 'pod0',
    link: 'pod0',
    namespace: '',
    addresses: [network.pods[0]?.ip as string],
    hostPorts: hostPort === undefined ? [] : [{ protocol: 'tcp', hostPort, containerPort: 8080 } as const],
    usesPortmap: false,
    attachedAt: 0,
  };
  const rules = hostPortRules(ranges, [], API);
  await table.set('host-ports', hostPortSection(rules, ranges, new Map([['pod0', pod]]), new Map()));
}

/** By index: the options of each Pod as an endpoint; undefined: the Pod is not an endpoint. */
async function applyOne(spec: ServiceSpec, pods: (EndpointOptions | undefined)[], status = {}): Promise<void> {
  const service = { ...serviceOf('web', spec), status };
  const chosen = pods.flatMap((options, index) =>
    options === undefined ? [] : [{ place: network.pods[index] as Place, options }],
  );
  await apply(
    [service],
    [
      sliceOf(
        service,
        chosen.map(({ place, options }) => endpoint(place.ip, options)),
      ),
      sliceOf(
        service,
        chosen.map(({ place, options }) => endpoint(place.ip6, options)),
      ),
    ],
  );
}

const tcp = (address: string, port = 80) => ({ protocol: 'tcp', address, port }) as const;
const udp = (address: string, port = 80) => ({ protocol: 'udp', address, port }) as const;

async function answers(from: Place, to: Parameters<Place['peer']['ask']>[0], count = 24): Promise<string[]> {
  const found = await Promise.all(Array.from({ length: count }, () => from.peer.ask(to)));
  return [...new Set(found)].sort();
}
const names = async (...args: Parameters<typeof answers>): Promise<string[]> => [
  ...new Set((await answers(...args)).map((answer) => answer.split(' ')[0] as string)),
];

const CLUSTER_IP = '10.96.0.1';
const NODE_PORT = 30_080;
const nodePort: ServiceSpec = {
  type: 'NodePort',
  externalTrafficPolicy: 'Cluster',
  ports: [portOf(80, { nodePort: NODE_PORT })],
};

describe('cluster IPs', () => {
  it('connections are distributed to all ready endpoints and come from the address of the Pod', async () => {
    await applyOne({}, [{}, {}, { ready: false }]);
    expect(await answers(network.pods[2] as Place, tcp(CLUSTER_IP))).toEqual(['pod0 10.99.0.12', 'pod1 10.99.0.12']);
    expect(await names(network.node, tcp(CLUSTER_IP))).toEqual(['pod0', 'pod1']);
    // Connections of a client outside the Pod range are masqueraded, so that replies pass through the node.
    expect(await answers(network.outside, tcp(CLUSTER_IP))).toEqual(['pod0 10.99.0.1', 'pod1 10.99.0.1']);
  });

  it('a Pod reaches itself through a Service', async () => {
    await applyOne({}, [{}]);
    expect(await answers(network.pods[0] as Place, tcp(CLUSTER_IP), 2)).toEqual(['pod0 10.99.0.1']);
  });

  it('UDP reaches the endpoints, too', async () => {
    await applyOne({ ports: [portOf(53, { protocol: 'UDP' })] }, [{}, {}]);
    expect(await names(network.pods[2] as Place, udp(CLUSTER_IP, 53))).toEqual(['pod0', 'pod1']);
  });

  it('IPv6 reaches the endpoints, too', async () => {
    await applyOne({ clusterIPs: ['fd00:96::1'], ipFamilies: ['IPv6'] }, [{}, {}]);
    expect(await answers(network.pods[2] as Place, tcp('fd00:96::1'))).toEqual([
      'pod0 fd00:99::12',
      'pod1 fd00:99::12',
    ]);
  });

  it('SCTP has its own elements', async () => {
    await applyOne({ ports: [portOf(80, { protocol: 'SCTP' })] }, [{}]);
    const listed = await network.node.namespace.runOk('nft', [
      'list',
      'map',
      'inet',
      'lifepod-0',
      'services/endpoints-4-0',
    ]);
    expect(listed).toContain('10.96.0.1 . sctp . 80 : 10.99.0.10 . 8080');
    expect(await network.pods[2]?.peer.ask(tcp(CLUSTER_IP))).toBe('ECONNREFUSED');
  });

  it('a Service without endpoints refuses connections, as do other ports of a cluster IP', async () => {
    await applyOne({ ports: [portOf(80), portOf(53, { name: 'dns', protocol: 'UDP' })] }, []);
    for (const from of [network.pods[2] as Place, network.node, network.outside]) {
      expect(await from.peer.ask(tcp(CLUSTER_IP))).toBe('ECONNREFUSED');
      expect(await from.peer.ask(tcp(CLUSTER_IP, 81))).toBe('ECONNREFUSED');
      expect(await from.peer.ask(udp(CLUSTER_IP, 53))).toBe('ECONNREFUSED');
    }
  });

  it('packets to an address without a Service are dropped, and the addresses of the node itself stay reachable', async () => {
    await applyOne({ clusterIP: RESERVED, clusterIPs: [RESERVED] }, []);
    expect(await network.pods[2]?.peer.ask(tcp('10.96.0.77'))).toBe('timeout');
    await network.node.namespace.runOk('ip', ['address', 'add', `${RESERVED}/32`, 'dev', 'lo']);
    const stop = await network.node.peer.listen('node', 80);
    expect(await network.pods[2]?.peer.ask(tcp(RESERVED))).toBe('node 10.99.0.12');
    expect(await network.node.peer.ask(tcp(RESERVED))).toBe(`node ${RESERVED}`);
    await stop();
  });

  it('a Service may lead to an address of the node that the rules leave out', async () => {
    await network.node.namespace.runOk('ip', ['address', 'replace', `${RESERVED}/32`, 'dev', 'lo']);
    const stop = await network.node.peer.listen('node', 8080);
    const other = serviceOf('other', { clusterIP: '10.96.0.78', clusterIPs: ['10.96.0.78'] });
    await apply([other], [sliceOf(other, [endpoint(RESERVED)])]);
    expect(await answers(network.pods[2] as Place, tcp('10.96.0.78'), 2)).toEqual(['node 10.99.0.12']);
    await stop();
  });

  it('serving endpoints that terminate get traffic only if no endpoint is ready', async () => {
    const leaving = { ready: false, serving: true, terminating: true };
    await applyOne({}, [leaving, {}]);
    expect(await names(network.pods[2] as Place, tcp(CLUSTER_IP))).toEqual(['pod1']);
    await applyOne({}, [leaving, { ready: false, serving: false, terminating: true }]);
    expect(await names(network.pods[2] as Place, tcp(CLUSTER_IP))).toEqual(['pod0']);
  });

  it('internalTrafficPolicy Local reaches the endpoints of the node only, and drops packets if there are none', async () => {
    await applyOne({ internalTrafficPolicy: 'Local' }, [{ node: 'n2' }, {}]);
    expect(await names(network.pods[2] as Place, tcp(CLUSTER_IP))).toEqual(['pod1']);
    await applyOne({ internalTrafficPolicy: 'Local' }, [{ node: 'n2' }]);
    expect(await network.pods[2]?.peer.ask(tcp(CLUSTER_IP))).toBe('timeout');
  });

  it('hints restrict traffic to the endpoints for the zone of the node', async () => {
    await applyOne({}, [{ zones: ['a'] }, { zones: ['b'] }]);
    expect(await names(network.pods[2] as Place, tcp(CLUSTER_IP))).toEqual(['pod0']);
    await applyOne({}, [{ zones: ['a'] }, {}]);
    expect(await names(network.pods[2] as Place, tcp(CLUSTER_IP))).toEqual(['pod0', 'pod1']);
  });
});

describe('traffic from outside', () => {
  it('a node port is open on all addresses of the node, and connections come from the node', async () => {
    await applyOne(nodePort, [{}, {}]);
    expect(await answers(network.outside, tcp('192.0.2.1', NODE_PORT))).toEqual(['pod0 10.99.0.1', 'pod1 10.99.0.1']);
    expect(await names(network.node, tcp('192.0.2.1', NODE_PORT))).toEqual(['pod0', 'pod1']);
    expect(await names(network.node, tcp('127.0.0.1', NODE_PORT))).toEqual(['pod0', 'pod1']);
    expect(await names(network.pods[2] as Place, tcp('192.0.2.1', NODE_PORT))).toEqual(['pod0', 'pod1']);
    expect(await names(network.pods[2] as Place, tcp('10.99.0.1', NODE_PORT))).toEqual(['pod0', 'pod1']);
  });

  it('a node port of UDP and of IPv6 is open', async () => {
    const ports = [
      portOf(80, { nodePort: NODE_PORT }),
      portOf(53, { name: 'dns', protocol: 'UDP', nodePort: NODE_PORT }),
    ];
    await applyOne({ ...nodePort, clusterIPs: [CLUSTER_IP, 'fd00:96::1'], ipFamilies: ['IPv4', 'IPv6'], ports }, [{}]);
    expect(await names(network.outside, udp('192.0.2.1', NODE_PORT), 2)).toEqual(['pod0']);
    expect(await names(network.node, udp('127.0.0.1', NODE_PORT), 2)).toEqual(['pod0']);
    expect(await answers(network.outside, tcp('2001:db8::1', NODE_PORT), 2)).toEqual(['pod0 fd00:99::1']);
    expect(await names(network.node, tcp('2001:db8::1', NODE_PORT), 2)).toEqual(['pod0']);
  });

  it('a node port leads to an endpoint outside the machine, except from 127.0.0.1', async () => {
    const { outside, node, pods } = network;
    await outside.peer.listen('outside', 8080);
    const service = serviceOf('web', nodePort);
    await apply([service], [sliceOf(service, [endpoint(outside.ip)])]);
    const asked = Promise.all([
      pods[0]?.peer.ask(tcp(node.ip, NODE_PORT)),
      node.peer.ask(tcp(node.ip, NODE_PORT)),
      node.peer.ask(tcp('127.0.0.1', NODE_PORT)),
    ]);
    // Without route_localnet of the outgoing interface, the kernel sends no packets from a loopback address to other machines.
    expect(await asked).toEqual([`outside ${node.ip}`, `outside ${node.ip}`, 'timeout']);
  });

  it('a node port without endpoints refuses connections', async () => {
    await applyOne(nodePort, []);
    expect(await network.outside.peer.ask(tcp('192.0.2.1', NODE_PORT))).toBe('ECONNREFUSED');
    expect(await network.node.peer.ask(tcp('127.0.0.1', NODE_PORT))).toBe('ECONNREFUSED');
  });

  it.each<[string, ServiceSpec, object, string]>([
    ['an external IP', { externalIPs: ['198.51.100.7'], externalTrafficPolicy: 'Cluster' }, {}, '198.51.100.7'],
    [
      'an address of a load balancer',
      { type: 'LoadBalancer', externalTrafficPolicy: 'Cluster' },
      { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } },
      '192.0.2.1',
    ],
  ])('%s leads to the endpoints', async (_, spec, status, address) => {
    await applyOne(spec, [{}, {}], status);
    expect(await answers(network.outside, tcp(address))).toEqual(['pod0 10.99.0.1', 'pod1 10.99.0.1']);
    expect(await names(network.node, tcp(address))).toEqual(['pod0', 'pod1']);
    expect(await names(network.pods[2] as Place, tcp(address))).toEqual(['pod0', 'pod1']);
    await applyOne(spec, [], status);
    expect(await network.outside.peer.ask(tcp(address))).toBe('ECONNREFUSED');
  });

  it('externalTrafficPolicy Local keeps the address of the client and reaches endpoints of the node only', async () => {
    const spec: ServiceSpec = { ...nodePort, externalTrafficPolicy: 'Local' };
    await applyOne(spec, [{}, { node: 'n2' }]);
    expect(await answers(network.outside, tcp('192.0.2.1', NODE_PORT))).toEqual(['pod0 192.0.2.2']);
    expect(await names(network.node, tcp('127.0.0.1', NODE_PORT))).toEqual(['pod0', 'pod1']);
    expect(await names(network.pods[2] as Place, tcp('192.0.2.1', NODE_PORT))).toEqual(['pod0', 'pod1']);
    await applyOne(spec, [undefined, { node: 'n2' }]);
    expect(await network.outside.peer.ask(tcp('192.0.2.1', NODE_PORT))).toBe('timeout');
    expect(await names(network.node, tcp('192.0.2.1', NODE_PORT))).toEqual(['pod1']);
  });

  it('externalTrafficPolicy Local falls back to terminating endpoints of the node', async () => {
    const leaving = { ready: false, serving: true, terminating: true };
    await applyOne({ ...nodePort, externalTrafficPolicy: 'Local' }, [leaving, { node: 'n2' }]);
    expect(await answers(network.outside, tcp('192.0.2.1', NODE_PORT))).toEqual(['pod0 192.0.2.2']);
    expect(await names(network.node, tcp('192.0.2.1', NODE_PORT))).toEqual(['pod1']);
  });

  it('loadBalancerSourceRanges admit only their clients', async () => {
    const status = { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } };
    const spec: ServiceSpec = { type: 'LoadBalancer', externalTrafficPolicy: 'Cluster' };
    const ranges = ['203.0.113.0/24', '203.0.113.0/25', '192.0.2.2/32'];
    await applyOne({ ...spec, loadBalancerSourceRanges: ranges }, [{}], status);
    expect(await names(network.outside, tcp('192.0.2.1'), 2)).toEqual(['pod0']);
    expect(await network.pods[2]?.peer.ask(tcp('192.0.2.1'))).toBe('timeout');
    expect(await names(network.pods[2] as Place, tcp(CLUSTER_IP), 2)).toEqual(['pod0']);
    await applyOne({ ...spec, loadBalancerSourceRanges: ['2001:db8::/64'] }, [{}], status);
    expect(await network.outside.peer.ask(tcp('192.0.2.1'))).toBe('timeout');
    for (const all of [
      ['0.0.0.0/0', '::/0'],
      ['0.0.0.0/1', '128.0.0.0/1', '10.0.0.0/8'],
    ]) {
      await applyOne({ ...spec, loadBalancerSourceRanges: all }, [{}], status);
      expect(await names(network.outside, tcp('192.0.2.1'), 2)).toEqual(['pod0']);
    }
  });
});

describe('the API', () => {
  const port = API.port;
  const atApi = (): Promise<string> => network.node.peer.ask(tcp(API_IP, port));
  const onNode: ServiceSpec = { ...nodePort, ports: [portOf(port, { nodePort: port })] };
  const balanced: ServiceSpec = { ...onNode, type: 'LoadBalancer' };
  const ingress = { loadBalancer: { ingress: [{ ip: API_IP }] } };

  it.each<[string, ServiceSpec, object]>([
    ['a node port', onNode, {}],
    ['an external IP', { ...onNode, externalIPs: [API_IP] }, {}],
    ['a load balancer', balanced, ingress],
    ['a load balancer that admits no client', { ...balanced, loadBalancerSourceRanges: ['203.0.113.0/24'] }, ingress],
  ])('%s with its address and port gets no connection to it, with endpoints or without', async (_, spec, status) => {
    const stop = await network.node.peer.listen('api', port);
    await applyOne(spec, [{}], status);
    expect(await atApi()).toBe('api 127.0.0.1');
    expect(await names(network.node, tcp('192.0.2.1', port), 2)).toEqual(['pod0']);
    await applyOne(spec, [], status);
    expect(await atApi()).toBe('api 127.0.0.1');
    expect(await network.node.peer.ask(tcp('192.0.2.1', port))).toBe('ECONNREFUSED');
    await stop();
  });

  it('a host port with its number gets no connection to it', async () => {
    await apply([], []);
    const stop = await network.node.peer.listen('api', port);
    await applyHostPort(port);
    expect(await atApi()).toBe('api 127.0.0.1');
    expect(await names(network.node, tcp('192.0.2.1', port), 2)).toEqual(['pod0']);
    expect(await names(network.outside, tcp('192.0.2.1', port), 2)).toEqual(['pod0']);
    await applyHostPort(undefined);
    await stop();
  });
});

describe('a host port with the number of a port of a Service', () => {
  it('gets connections only while the Service has no endpoints, whichever was created first', async () => {
    const at = () => names(network.outside, tcp('192.0.2.1', NODE_PORT), 4);
    await applyHostPort(NODE_PORT);
    await applyOne(nodePort, [undefined, {}]);
    expect(await at()).toEqual(['pod1']);
    await applyHostPort(undefined);
    await applyHostPort(NODE_PORT);
    expect(await at()).toEqual(['pod1']);
    await applyOne(nodePort, []);
    expect(await at()).toEqual(['pod0']);
    await applyHostPort(undefined);
  });
});

describe('session affinity', () => {
  const affinity = (timeoutSeconds: number): ServiceSpec => ({
    ...nodePort,
    sessionAffinity: 'ClientIP',
    sessionAffinityConfig: { clientIP: { timeoutSeconds } },
  });

  it('a client keeps its endpoint while others are added, also on the node port, until the endpoint is removed', async () => {
    await applyOne(affinity(10_800), [{}, {}]);
    const client = network.pods[2] as Place;
    const [first = ''] = await names(client, tcp(CLUSTER_IP));
    expect(await names(client, tcp('192.0.2.1', NODE_PORT))).toEqual([first]);
    await applyOne(affinity(10_800), [{}, {}, {}]);
    expect(await names(client, tcp(CLUSTER_IP))).toEqual([first]);
    const others = [0, 1].map((index) => (`pod${index}` === first ? undefined : {}));
    await applyOne(affinity(10_800), others);
    const [second] = await names(client, tcp(CLUSTER_IP));
    expect(second).not.toBe(first);
  });

  it('a new owner of the table keeps the clients of the endpoints', async () => {
    await applyOne(affinity(10_800), [{}, {}, {}]);
    const [first] = await names(network.outside, tcp('192.0.2.1', NODE_PORT));
    await openTable({ name: 'lifepod-0', namespace: network.node.namespace.name, signal }).set(
      'services',
      section.section(),
    );
    expect(await names(network.outside, tcp('192.0.2.1', NODE_PORT))).toEqual([first]);
  });

  it('the kernel forgets a client after the timeout', async () => {
    await applyOne(affinity(1), [{}, {}, {}]);
    expect(await names(network.outside, tcp('192.0.2.1', NODE_PORT), 12)).toHaveLength(1);
    await expect
      .poll(async () => await network.node.namespace.runOk('nft', ['list', 'sets', 'inet']), {
        timeout: 30_000,
        interval: 200,
      })
      .not.toContain('192.0.2.2');
  });
});

describe('changes', () => {
  it('a connection survives all changes of its Service and a replacement of the whole section', async () => {
    await applyOne({}, [{}]);
    const connection = await network.outside.peer.open(tcp(CLUSTER_IP));
    expect(await connection.say()).toBe('pod0 10.99.0.1');
    for (const pods of [[{}, {}], [undefined, {}], []]) {
      await applyOne({}, pods);
      expect(await connection.say()).toBe('pod0 10.99.0.1');
    }
    await apply([], []);
    await openTable({ name: 'lifepod-0', namespace: network.node.namespace.name, signal }).set(
      'services',
      section.section(),
    );
    expect(await connection.say()).toBe('pod0 10.99.0.1');
    await connection.close();
  });

  it('a packet that finds nothing, as in the moment of a change, is looked up again', async () => {
    await applyOne(nodePort, [{}]);
    const nft = (...args: string[]): Promise<string> => network.node.namespace.runOk('nft', args);
    const chains = ['services/prerouting', 'services/output'].map((name) => ['inet', 'lifepod-0', name]);
    for (const chain of chains) await nft('flush', 'chain', ...chain);
    try {
      expect(await answers(network.pods[2] as Place, tcp(CLUSTER_IP), 2)).toEqual(['pod0 10.99.0.12']);
      expect(await names(network.node, tcp(CLUSTER_IP), 2)).toEqual(['pod0']);
      expect(await answers(network.outside, tcp('192.0.2.1', NODE_PORT), 2)).toEqual(['pod0 10.99.0.1']);
    } finally {
      for (const chain of chains) await nft('add', 'rule', ...chain, 'jump', 'services/translate');
    }
  });

  it('the oldest of several Services has an external IP that all claim', async () => {
    const claim = (name: string, clusterIP: string, year: number): Service =>
      serviceOf(
        name,
        { clusterIP, externalIPs: ['198.51.100.7'], externalTrafficPolicy: 'Cluster' },
        { creationTimestamp: `${year}-01-01T00:00:00Z` },
      );
    const [young, old] = [claim('young', '10.96.0.1', 2025), claim('old', '10.96.0.2', 2024)];
    const slices = [young, old].map((service, index) =>
      sliceOf(service, [endpoint(network.pods[index]?.ip as string)]),
    );
    await apply([young], slices);
    expect(await names(network.outside, tcp('198.51.100.7'), 4)).toEqual(['pod0']);
    await apply([young, old], slices);
    expect(await names(network.outside, tcp('198.51.100.7'), 4)).toEqual(['pod1']);
    await apply([young], slices);
    expect(await names(network.outside, tcp('198.51.100.7'), 4)).toEqual(['pod0']);
  });
});
