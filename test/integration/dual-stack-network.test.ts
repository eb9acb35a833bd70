/** The machine is a network namespace, so that its kernel has no settings of other tests. */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTable } from '../../src/network/nftables/table.ts';
import { networkNames } from '../../src/network/pod-network/names.ts';
import { endpoint, serviceOf, sliceOf } from '../../src/network/proxy/proxy-fixture.ts';
import { ServicesSection } from '../../src/network/proxy/services-section.ts';
import { runCommand, runCommandOk } from '../../src/platform/processes.ts';
import { attach, type Sandbox } from '../support/cni.ts';
import { ask, inside, reaches, serve, whyRefused } from '../support/network-namespace.ts';

const unique = randomBytes(3).toString('hex');
const machine = `lifepod-test-${unique}`;
/** A machine with addresses in the same networks as `machine`, and without routes to Pods. */
const client = `lifepod-test-${unique}-client`;
const NODE = ['192.0.2.10', '2001:db8::10'] as const;
const CLIENT = ['192.0.2.20', '2001:db8::20'] as const;
const GATEWAYS = ['10.213.78.1', 'fd00:213:78::1'] as const;
const PROGRAM = join(import.meta.dirname, '../support/network-of-namespace.ts');

let options: { dataDir: string; instance: string; podCidr: string; serviceCidr: string; serviceIps: string[] };
const sandboxes: Sandbox[] = [];

const change = (command: 'up' | 'down', more: Partial<typeof options> = {}): Promise<string> =>
  runCommandOk('ip', [
    ...['netns', 'exec', machine, process.execPath, PROGRAM, command],
    JSON.stringify({ ...options, ...more }),
  ]);

async function start(name: string, hostPorts: Sandbox['hostPorts'] = []): Promise<{ name: string; ips: string[] }> {
  const sandbox = { name: `lifepod-test-${unique}-${name}`, hostPorts, machine };
  await runCommandOk('ip', ['netns', 'add', sandbox.name]);
  sandboxes.push(sandbox);
  return { name: sandbox.name, ips: await attach(options, sandbox) };
}

const shown = async (...command: string[]): Promise<string> => (await inside(machine, ...command)).stdout;

beforeAll(async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'lifepod-network-'));
  options = {
    dataDir,
    instance: dataDir,
    podCidr: '10.213.78.0/24,fd00:213:78::/64',
    serviceCidr: '10.214.78.0/24,fd00:214:78::/112',
    serviceIps: ['10.214.78.10', '10.214.78.1'],
  };
  const commands = [
    `netns add ${machine}`,
    `netns add ${client}`,
    `-n ${machine} link set lo up`,
    `-n ${machine} link add eth0 type veth peer name eth0 netns ${client}`,
    ...NODE.map((ip, index) => `-n ${machine} address add ${ip}/${index === 0 ? 24 : '64 nodad'} dev eth0`),
    `-n ${machine} link set eth0 up`,
    `-n ${machine} link add other type bridge`,
    `-n ${machine} -6 route add default via ${CLIENT[1]} dev eth0 proto ra`,
    ...CLIENT.map((ip, index) => `-n ${client} address add ${ip}/${index === 0 ? 24 : '64 nodad'} dev eth0`),
    `-n ${client} link set eth0 up`,
  ];
  for (const command of commands) await runCommandOk('ip', command.split(' '));
  await change('up');
});
afterAll(async () => {
  await change('down');
  for (const name of [...sandboxes.map((each) => each.name), client, machine]) {
    await runCommand('ip', ['netns', 'delete', name]);
  }
  await rm(options.dataDir, { recursive: true, force: true });
});

test('Pods of a network with two ranges have an address of each, and reach each other, the node and others by both', async () => {
  const web = await start('web', [{ protocol: 'tcp', hostPort: 8080, containerPort: 80 }]);
  const other = await start('other');
  await change('up');
  expect(web.ips).toEqual(['10.213.78.2', 'fd00:213:78::2']);
  expect(other.ips).toEqual(['10.213.78.3', 'fd00:213:78::3']);
  await using _web = await serve(web.name, 80, 'web');
  await using _outside = await serve(client, 80, 'outside');
  for (const index of [0, 1] as const) {
    expect(await reaches(web.name, GATEWAYS[index])).toBe(true);
    expect(await ask(other.name, web.ips[index] as string, 80)).toBe(`web to ${other.ips[index]}`);
    expect(await ask(machine, web.ips[index] as string, 80)).toBe(`web to ${GATEWAYS[index]}`);
    // The client has no route to Pods, so it can answer the node only.
    expect(await ask(other.name, CLIENT[index], 80)).toBe(`outside to ${NODE[index]}`);
    expect(await ask(client, NODE[index], 8080)).toBe(`web to ${CLIENT[index]}`);
  }
});

test('forwarding keeps the router advertisements of the interface that has its default route from them, and of no other', async () => {
  const accepted = (link: string): Promise<string> => shown('cat', `/proc/sys/net/ipv6/conf/${link}/accept_ra`);
  expect(await shown('cat', '/proc/sys/net/ipv6/conf/all/forwarding')).toBe('1\n');
  expect([await accepted('eth0'), await accepted('other'), await accepted('default')]).toEqual(['2\n', '1\n', '1\n']);
});

test('cluster IPs of both families answer a machine without a default route, and Pods', async () => {
  const web = await start('service');
  const other = await start('service-client');
  await change('up');
  await using _web = await serve(web.name, 8080, 'web');
  const clusterIPs = ['10.214.78.20', 'fd00:214:78::20'] as const;
  const section = new ServicesSection({
    nodeName: 'n1',
    zone: 'a',
    podCidrs: options.podCidr.split(','),
    serviceCidrs: options.serviceCidr.split(','),
    reservedIps: [],
    api: { ips: ['127.0.0.1'], port: 6443 },
  });
  const service = serviceOf('web', {
    clusterIP: clusterIPs[0],
    clusterIPs: [...clusterIPs],
    ipFamilies: ['IPv4', 'IPv6'],
  });
  section.update(
    'default/web',
    service,
    web.ips.map((ip) => sliceOf(service, [endpoint(ip)])),
  );
  const { signal } = new AbortController();
  const table = openTable({ name: networkNames(options).table, namespace: machine, signal });
  await table.set('services', section.section());
  await shown('ip', '-6', 'route', 'delete', 'default');
  for (const index of [0, 1] as const) {
    const answers = [machine, other.name].map((from) => ask(from, clusterIPs[index], 80));
    expect(await Promise.all(answers)).toEqual([`web to ${GATEWAYS[index]}`, `web to ${other.ips[index]}`]);
    expect(await whyRefused(other.name, clusterIPs[index], 81)).toBe('ECONNREFUSED');
  }
  await shown('ip', '-6', 'route', 'add', 'default', 'via', CLIENT[1], 'dev', 'eth0', 'proto', 'ra');
  await table.set('services', new Map());
});

test('setting up the network with two ranges again keeps its addresses', async () => {
  const before = await shown('ip', '-brief', 'address');
  await change('up');
  expect(await shown('ip', '-brief', 'address')).toBe(before);
});

test('an IPv6 range that overlaps a route or the range of Services is refused', async () => {
  const other = { dataDir: join(options.dataDir, 'other'), instance: 'other' };
  await expect(change('up', { ...other, podCidr: '10.213.79.0/24,2001:db8::/65' })).rejects.toThrow(
    'the Pod range 10.213.79.0/24,2001:db8::/65 overlaps the route 2001:db8::/64 of the interface eth0',
  );
  await expect(change('up', { ...other, podCidr: '10.213.79.0/24,fd00:214:78::/64' })).rejects.toThrow(
    'and the Service range',
  );
});

test('an IPv6 range is refused on a machine that has disabled IPv6', async () => {
  const other = {
    dataDir: join(options.dataDir, 'other'),
    instance: 'other',
    podCidr: '10.213.79.0/24,fd00:213:79::/64',
  };
  const disable = (value: 0 | 1): Promise<string> =>
    shown('sh', '-c', `echo ${value} > /proc/sys/net/ipv6/conf/default/disable_ipv6`);
  await disable(1);
  try {
    await expect(change('up', other)).rejects.toThrow('the Pod range fd00:213:79::/64 needs IPv6, which this machine');
  } finally {
    await disable(0);
  }
});

test('removing a network with two ranges removes its interfaces', async () => {
  await change('down');
  expect((await shown('ls', '/sys/class/net')).split(/\s+/).filter((link) => /^(lp|veth)/.test(link))).toEqual([]);
  expect(await shown('ip', '-6', 'route')).not.toContain('fd00:213:78:');
});
