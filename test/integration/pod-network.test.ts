/** The machine is a network namespace, so that the tests can change settings of its kernel. */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Section } from '../../src/network/nftables/section.ts';
import { openTable } from '../../src/network/nftables/table.ts';
import { cniConfigurationPath, networkNames } from '../../src/network/pod-network/names.ts';
import type { NetworkOptions } from '../../src/network/pod-network/pod-network.ts';
import { PoliciesSection } from '../../src/network/policies/policies-section.ts';
import { endpoint, portOf, serviceOf, sliceOf } from '../../src/network/proxy/proxy-fixture.ts';
import { ServicesSection } from '../../src/network/proxy/services-section.ts';
import { runCommand, runCommandOk } from '../../src/platform/processes.ts';
import { attach, detach, type Sandbox } from '../support/cni.ts';
import { ask, connect, echoes, exchangeDatagrams, inside, serve, whyRefused } from '../support/network-namespace.ts';

const unique = randomBytes(3).toString('hex');
const machine = `lifepod-test-${unique}`;
/** A machine with an address in the same network as `machine`. */
const client = `lifepod-test-${unique}-client`;
const GATEWAY = '10.213.77.1';
const NODE = '192.0.2.10';
const NODE_TOO = '192.0.2.11';
const CLIENT = '192.0.2.20';
const PROGRAM = join(import.meta.dirname, '../support/network-of-namespace.ts');

let options: { dataDir: string; instance: string; podCidr: string; serviceCidr: string; serviceIps: string[] };
const sandboxes: Sandbox[] = [];

const setUp = (more: Pick<NetworkOptions, 'api'> = {}): Promise<string> => change('up', more);
const change = (command: 'up' | 'down', more: Pick<NetworkOptions, 'api'> = {}): Promise<string> => {
  const text = JSON.stringify({ ...options, ...more });
  return runCommandOk('ip', ['netns', 'exec', machine, process.execPath, PROGRAM, command, text]);
};

async function start(name: string, hostPorts: Sandbox['hostPorts'] = []): Promise<Sandbox & { ip: string }> {
  const sandbox = { name: `lifepod-test-${unique}-${name}`, hostPorts, machine };
  await runCommandOk('ip', ['netns', 'add', sandbox.name]);
  sandboxes.push(sandbox);
  const [ip = ''] = await attach(options, sandbox);
  return { ...sandbox, ip };
}

beforeAll(async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'lifepod-network-'));
  options = {
    dataDir,
    instance: dataDir,
    podCidr: '10.213.77.0/24',
    serviceCidr: '10.214.77.0/24',
    serviceIps: ['10.214.77.10', '10.214.77.1'],
  };
  const commands = [
    `netns add ${machine}`,
    `netns add ${client}`,
    `-n ${machine} link set lo up`,
    `-n ${machine} link add eth0 type veth peer name eth0 netns ${client}`,
    `-n ${machine} address add ${NODE}/24 dev eth0`,
    `-n ${machine} address add ${NODE_TOO}/24 dev eth0`,
    `-n ${machine} link set eth0 up`,
    `-n ${machine} route add default via ${CLIENT}`,
    `-n ${client} address add ${CLIENT}/24 dev eth0`,
    `-n ${client} link set eth0 up`,
  ];
  for (const command of commands) await runCommandOk('ip', command.split(' '));
  await setUp();
});
afterAll(async () => {
  await change('down');
  for (const name of [...sandboxes.map((each) => each.name), client, machine]) {
    await runCommand('ip', ['netns', 'delete', name]);
  }
  await rm(options.dataDir, { recursive: true, force: true });
});

const BRIDGE_NETFILTER = '/proc/sys/net/bridge/bridge-nf-call-iptables';

/** Sets whether the rules of the machine see bridged packets. Does nothing if the kernel has no br_netfilter. */
const setBridgeNetfilter = (setting: string): Promise<unknown> =>
  inside(machine, 'sh', '-c', `if [ -e ${BRIDGE_NETFILTER} ]; then echo ${setting} > ${BRIDGE_NETFILTER}; fi`);

test.each(['0', '1'])('host ports work with bridge-nf-call-iptables %s', async (setting) => {
  await setBridgeNetfilter(setting);
  const web = await start(`web${setting}`, [
    { protocol: 'tcp', hostPort: 8080, containerPort: 80 },
    { protocol: 'udp', hostPort: 8080, containerPort: 80 },
    { protocol: 'tcp', hostPort: 8081, containerPort: 80, hostIp: NODE_TOO },
    { protocol: 'sctp', hostPort: 8082, containerPort: 80 },
  ]);
  const other = await start(`other${setting}`, [{ protocol: 'tcp', hostPort: 8080, containerPort: 81 }]);
  await setUp();
  const gateway = GATEWAY;
  await using _server = await serve(web.name, 80, 'web');
  const answers = async (port: number, ...from: [namespace: string, address: string][]): Promise<string[]> =>
    Promise.all(from.map(([namespace, address]) => ask(namespace, address, port)));

  expect(
    await answers(8080, [machine, '127.0.0.1'], [machine, NODE], [client, NODE], [other.name, NODE], [web.name, NODE]),
  ).toEqual([
    `web to ${gateway}`,
    `web to ${NODE}`,
    `web to ${CLIENT}`,
    `web to ${other.ip}`,
    // The Pod reaches itself with the gateway's address as the source, because it would drop a packet from its own address.
    `web to ${gateway}`,
  ]);
  expect(await answers(8081, [client, NODE_TOO], [client, NODE], [machine, '127.0.0.1'])).toEqual([
    `web to ${CLIENT}`,
    '',
    '',
  ]);
  expect(await ask(client, NODE, 8080, 'udp')).toBe(`web to ${CLIENT}`);
  expect(await ask(machine, '127.0.0.1', 8080, 'udp')).toBe(`web to ${gateway}`);
  // Cluster IPs that the machine has, such as that of the cluster's DNS, have no host ports.
  for (const ip of options.serviceIps) expect(await ask(other.name, ip, 8080)).toBe('');
  const rules = await inside(machine, 'nft', 'list', 'table', 'inet', networkNames(options).table);
  expect(rules.stdout).toContain(`sctp . 8082 : ${web.ip} . 80`);

  // The port belongs to the Pod that had it first, until the Pod has ended.
  await detach(options, web);
  await setUp();
  await using _late = await serve(other.name, 81, 'other');
  expect(await ask(client, NODE, 8080)).toBe(`other to ${CLIENT}`);
  await detach(options, other);
  await setUp();
  expect(await ask(client, NODE, 8080)).toBe('');
  expect((await inside(machine, 'ip', 'route', 'show')).stdout).not.toMatch(/veth/);
});

test('a UDP client that keeps its port reaches the first and the next Pod that has the host port', async () => {
  const hostPorts = [{ protocol: 'udp', hostPort: 8083, containerPort: 80 }] as const;
  await using _program = await serve(machine, 8083, 'program');
  await using datagrams = exchangeDatagrams(client, NODE, 8083);
  expect(await datagrams.exchange('?')).toBe(`program to ${CLIENT}`);
  const first = await start('first', hostPorts);
  const server = await serve(first.name, 80, 'first');
  await setUp();
  expect(await datagrams.exchange('?')).toBe(`first to ${CLIENT}`);
  await server[Symbol.asyncDispose]();
  await detach(options, first);
  const second = await start('second', hostPorts);
  await using _server = await serve(second.name, 80, 'second');
  await setUp();
  expect(await datagrams.exchange('?')).toBe(`second to ${CLIENT}`);
  await detach(options, second);
  await setUp();
});

const CLUSTER_IP = '10.214.77.20';
const NODE_PORT = 30_080;

function serviceTo(address?: string): Section {
  const service = serviceOf('web', {
    type: 'NodePort',
    clusterIP: CLUSTER_IP,
    externalTrafficPolicy: 'Cluster',
    ports: [
      portOf(80, { name: 'tcp', nodePort: NODE_PORT }),
      portOf(80, { name: 'udp', protocol: 'UDP', nodePort: NODE_PORT }),
    ],
  });
  const section = new ServicesSection({
    nodeName: 'n1',
    zone: 'a',
    podCidrs: [options.podCidr],
    serviceCidrs: [options.serviceCidr],
    reservedIps: options.serviceIps.slice(0, 1),
    api: { ips: ['127.0.0.1'], port: 6443 },
  });
  section.update('default/web', service, [sliceOf(service, address === undefined ? [] : [endpoint(address)])]);
  return section.section();
}

test.each(['0', '1'])('Services and NetworkPolicies apply with bridge-nf-call-iptables %s', async (setting) => {
  await setBridgeNetfilter(setting);
  const web = await start(`service${setting}`);
  const other = await start(`client${setting}`);
  await setUp();
  await using _server = await serve(web.name, 8080, 'web');
  const { signal } = new AbortController();
  const table = openTable({ name: networkNames(options).table, namespace: machine, signal });
  await table.set('services', serviceTo(web.ip));
  const answers = (): Promise<string[]> =>
    Promise.all([
      ask(other.name, CLUSTER_IP, 80),
      ask(other.name, CLUSTER_IP, 80, 'udp'),
      ask(other.name, web.ip, 8080),
      ask(other.name, NODE, NODE_PORT),
      ask(client, NODE, NODE_PORT),
      ask(web.name, CLUSTER_IP, 80),
      ask(machine, CLUSTER_IP, 80),
      ask(machine, '127.0.0.1', NODE_PORT),
      ask(machine, '127.0.0.1', NODE_PORT, 'udp'),
    ]);
  const gateway = 'web to 10.213.77.1';
  const ofNode = [gateway, gateway, gateway, gateway];
  const allowed = [...Array.from({ length: 3 }, () => `web to ${other.ip}`), gateway, gateway, ...ofNode];
  expect(await answers()).toEqual(allowed);

  const policies = new PoliciesSection();
  const policyPod = (app: string, { ip }: { ip: string }) => ({
    namespace: 'n',
    labels: { app },
    addresses: [ip],
    ports: [],
  });
  policies.setNamespace('n', {});
  policies.setPod('web', policyPod('web', web));
  policies.setPod('other', policyPod('other', other));
  const from = [{ podSelector: { matchLabels: { app: 'friend' } } }, { ipBlock: { cidr: `${CLIENT}/32` } }];
  policies.setPolicy('p', {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: 'p', namespace: 'n' },
    spec: { podSelector: { matchLabels: { app: 'web' } }, policyTypes: ['Ingress'], ingress: [{ from }] },
  });
  await table.set('policies', policies.section());
  // The Pod itself and the node are always allowed.
  expect(await answers()).toEqual(['', '', '', '', gateway, ...ofNode]);
  policies.setPod('other', policyPod('friend', other));
  await table.set('policies', policies.section());
  expect(await answers()).toEqual(allowed);

  await table.set('services', new Map());
  await table.set('policies', new Map());
  for (const sandbox of [web, other]) await detach(options, sandbox);
  await setUp();
});

test('on a machine without a default route, cluster IPs answer the machine and Pods, also those without endpoints', async () => {
  const web = await start('offline');
  const other = await start('offline-client');
  await setUp();
  await using _server = await serve(web.name, 8080, 'web');
  const table = openTable({
    name: networkNames(options).table,
    namespace: machine,
    signal: new AbortController().signal,
  });
  const route = (...args: string[]) => inside(machine, 'ip', 'route', ...args);
  await route('delete', 'default');
  await table.set('services', serviceTo(web.ip));
  const answers = () => Promise.all([machine, other.name].map((from) => ask(from, CLUSTER_IP, 80)));
  const expected = [`web to ${GATEWAY}`, `web to ${other.ip}`];
  expect(await answers()).toEqual(expected);
  await table.set('services', serviceTo());
  expect(await Promise.all([machine, other.name].map((from) => whyRefused(from, CLUSTER_IP, 80)))).toEqual([
    'ECONNREFUSED',
    'ECONNREFUSED',
  ]);

  // A program may have deleted the route, or stopped the interface, which deletes the route, too.
  await route('delete', options.serviceCidr);
  await setUp();
  await table.set('services', serviceTo(web.ip));
  expect(await answers()).toEqual(expected);
  await route('add', 'default', 'via', CLIENT);
  await table.set('services', new Map());
  for (const sandbox of [web, other]) await detach(options, sandbox);
  await setUp();
});

const API = { ips: ['127.0.0.1', GATEWAY], port: 8080 };

test('Pods and the machine reach the cluster DNS, and a neighbor that routes there does not', async () => {
  const [dns = ''] = options.serviceIps;
  const pod = await start('dns-client');
  await inside(client, 'ip', 'route', 'add', dns, 'via', NODE);
  await setUp();
  await using _server = await serve(machine, 53, 'dns');
  await using _other = await serve(machine, 54, 'other');
  const answers = await Promise.all([
    ...[pod.name, machine, client].map((from) => ask(from, dns, 53)),
    ask(client, dns, 53, 'udp'),
    // The neighbor's packets do reach the address at another port, and port 53 of the machine's other address.
    ask(client, dns, 54),
    ask(client, NODE, 53),
  ]);
  expect(answers).toEqual([`dns to ${pod.ip}`, `dns to ${dns}`, '', '', `other to ${CLIENT}`, `dns to ${CLIENT}`]);
  await detach(options, pod);
  await setUp();
});

/** The endpoint of the Service `kubernetes` is the gateway. */
function serviceToApi(): Section {
  const service = serviceOf('kubernetes', { clusterIP: options.serviceIps[1] as string, ports: [portOf(443)] });
  const section = new ServicesSection({
    nodeName: 'n1',
    zone: 'a',
    podCidrs: [options.podCidr],
    serviceCidrs: [options.serviceCidr],
    reservedIps: options.serviceIps.slice(0, 1),
    api: API,
  });
  section.update('default/kubernetes', service, [sliceOf(service, [endpoint(GATEWAY)])]);
  return section.section();
}

test('Pods and the machine reach the API at the gateway and at its cluster IP, and a neighbor that routes there does not', async () => {
  const { port } = API;
  const clusterIp = options.serviceIps[1] as string;
  const pod = await start('api-client');
  for (const ip of [GATEWAY, clusterIp]) await inside(client, 'ip', 'route', 'add', ip, 'via', NODE);
  await setUp();
  await using _server = await serve(machine, port, 'api');
  // Without the rules, a neighbor would reach the API.
  expect(await ask(client, GATEWAY, port)).toBe(`api to ${CLIENT}`);
  await setUp({ api: API });
  const table = openTable({
    name: networkNames(options).table,
    namespace: machine,
    signal: new AbortController().signal,
  });
  await table.set('services', serviceToApi());
  // Programs of the machine need no route to the range of Services.
  await inside(machine, 'ip', 'route', 'delete', 'default');
  const at = (ip: string, to: number) =>
    Promise.all([ask(pod.name, ip, to), ask(client, ip, to), ask(machine, ip, to)]);
  expect(await at(GATEWAY, port)).toEqual([`api to ${pod.ip}`, '', `api to ${GATEWAY}`]);
  expect(await at(clusterIp, 443)).toEqual([`api to ${pod.ip}`, '', expect.stringMatching(/^api to /)]);
  await inside(machine, 'ip', 'route', 'add', 'default', 'via', CLIENT);
  await table.set('services', new Map());
  await detach(options, pod);
  await setUp();
});

/** Older versions of lifepod wrote this configuration of the CNI network. */
function writeOlderConfiguration(): void {
  const { bridge, network } = networkNames(options);
  const list = {
    cniVersion: '1.0.0',
    name: network,
    plugins: [
      {
        type: 'bridge',
        bridge,
        isGateway: true,
        ipMasq: false,
        hairpinMode: true,
        ipam: {
          type: 'host-local',
          dataDir: join(options.dataDir, 'cni', 'networks'),
          ranges: [[{ subnet: options.podCidr }]],
          routes: [{ dst: '0.0.0.0/0' }],
        },
      },
      { type: 'portmap', capabilities: { portMappings: true } },
    ],
  };
  writeFileSync(cniConfigurationPath(options), JSON.stringify(list));
}

test('Pods that an older version attached to the bridge keep their connections and host ports when they are moved', async () => {
  const { bridge, table } = networkNames(options);
  writeOlderConfiguration();
  await inside(machine, 'nft', 'delete', 'table', 'inet', table);
  const old = await start('old', [{ protocol: 'tcp', hostPort: 8090, containerPort: 80 }]);
  const peer = await start('old-peer');
  await using _server = await echoes(old.name, 80);
  await using outside = connect(client, NODE, 8090);
  await using inThePod = connect(peer.name, old.ip, 80);
  expect([await outside.exchange('1'), await inThePod.exchange('1')]).toEqual(['1', '1']);
  const iptables = async (): Promise<string> => (await inside(machine, 'iptables-save')).stdout;
  expect(await iptables()).toContain('8090');
  expect((await inside(machine, 'ip', 'link', 'show', 'master', bridge)).stdout).not.toBe('');

  await setUp();
  expect((await inside(machine, 'ip', 'link', 'show', 'master', bridge)).stdout).toBe('');
  expect(await iptables()).not.toContain('8090');
  expect([await outside.exchange('2'), await inThePod.exchange('2')]).toEqual(['2', '2']);
  await using again = connect(machine, '127.0.0.1', 8090);
  expect(await again.exchange('3')).toBe('3');
  const young = await start('young');
  await setUp();
  await using between = connect(young.name, old.ip, 80);
  expect(await between.exchange('4')).toBe('4');
  for (const sandbox of [old, peer, young]) await detach(options, sandbox);
  expect((await inside(machine, 'ip', 'route', 'show')).stdout).not.toMatch(/veth/);
});
