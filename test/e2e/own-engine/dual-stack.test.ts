import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Node, Pod, Service } from '../../../src/api/generated/types.ts';
import { chooseFreeRanges } from '../../../src/engine/free-ranges.ts';
import { nodeAddress } from '../../../src/engine/machine-checks.ts';
import { readEngineRecord } from '../../../src/engine/settings.ts';
import {
  formatIpRange,
  type IpAddress,
  type IpRange,
  parseIp,
  parseIpRange,
  rangeContains,
} from '../../../src/machinery/ip.ts';
import { podRanges } from '../../../src/network/pod-network/ranges.ts';
import { runCommand } from '../../../src/platform/processes.ts';
import { launch, scratchFolder } from '../../support/lifepod.ts';
import { pod, WAIT } from '../../support/manifests.ts';
import { lifepod, record, recordAgain, useOwnEngine } from '../../support/own-engine.ts';
import { isReady } from '../../support/pods.ts';

const SERVE = `nc -ll -p 8080 -e sh -c 'echo "$HOSTNAME"' & ${WAIT}`;
const serve = { name: 'app', script: SERVE, readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 } };
const web = { app: 'web' };
/** A slow machine may need seconds until a change of the API is in the kernel's rules. */
const SOON = { timeout: 60_000, interval: 250 };

let podCidr: string;
let serviceCidr: string;

/** Returns a random range of unique local addresses (RFC 4193). */
function uniqueLocalRange(prefixLength: number): string {
  const groups = `fd${randomBytes(5).toString('hex')}`.match(/.{4}/g) ?? [];
  return formatIpRange(parseIpRange(`${groups.join(':')}::/${prefixLength}`) as IpRange);
}

useOwnEngine(async () => {
  const free = await chooseFreeRanges();
  podCidr = `${free.podCidr},${uniqueLocalRange(64)}`;
  serviceCidr = `${free.serviceCidr},${uniqueLocalRange(112)}`;
  return { options: ['--pod-cidr', podCidr, '--service-cidr', serviceCidr] };
});

const start = async (name: string, more: Parameters<typeof pod>[1] = {}): Promise<NonNullable<Pod['status']>> => {
  await lifepod.apply(pod(name, more));
  return (await record.until(name, isReady)).status ?? {};
};

async function create(name: string, spec: object): Promise<NonNullable<Service['spec']>> {
  const ports = [{ port: 80, targetPort: 8080 }];
  const more = { ipFamilyPolicy: 'PreferDualStack', selector: web, ports, ...spec };
  await lifepod.apply({ apiVersion: 'v1', kind: 'Service', metadata: { name }, spec: more });
  return (await lifepod.get<Service>('service', name)).spec as NonNullable<Service['spec']>;
}

const inPod = async (name: string, script: string): Promise<string> =>
  (await lifepod.exec(name, '--', 'sh', '-c', script)).stdout.trim();
const askFrom = (name: string, address: string, port: number): Promise<string> =>
  inPod(name, `timeout 5 nc -w 5 ${address} ${port}`);
const askFromMachine = async (address: string, port: number): Promise<string> =>
  (await runCommand('busybox', ['nc', '-w', '10', address, String(port)], { input: '' })).stdout.trim();

/**
 * The node must have the addresses of the machine's default routes. Without an IPv4 default route, its first address is the gateway of the
 * Pods.
 */
async function nodeIps(): Promise<string[]> {
  const { signal } = new AbortController();
  const [ipv4, ipv6] = await Promise.all([nodeAddress('IPv4', signal), nodeAddress('IPv6', signal)]);
  return [ipv4 ?? podRanges(podCidr)[0].gateway, ...(ipv6 === undefined ? [] : [ipv6])];
}

test('up does not record a range that a route of the machine overlaps, so that another one can be given', async () => {
  const scratch = scratchFolder();
  try {
    const dataDir = join(scratch.path, 'other');
    const { podCidr: free, serviceCidr: services } = await chooseFreeRanges();
    const ipv6 = podCidr.split(',')[1];
    const result = await launch([
      'up',
      '--data-dir',
      dataDir,
      '--port',
      '0',
      '--pod-cidr',
      `${free},${ipv6}`,
      '--service-cidr',
      services,
    ]);
    expect(result.stderr).toContain(`the Pod range ${free},${ipv6} overlaps the route ${ipv6} of the interface lp`);
    expect(readEngineRecord(dataDir)).toBeUndefined();
  } finally {
    await scratch.remove();
  }
});

test('the node and its Pods have addresses of both families, in the API, in /etc/hosts and in variables', async () => {
  const env = ['podIPs', 'hostIPs'].map((field) => ({
    name: field,
    valueFrom: { fieldRef: { fieldPath: `status.${field}` } },
  }));
  const [status, ofHost] = await Promise.all([
    start('client', { app: [{ name: 'app', script: WAIT, env }] }),
    start('host', { spec: { hostNetwork: true } }),
    start('web', { app: [serve], labels: web }),
  ]);
  const node = await lifepod.get<Node>('node', lifepod.nodeName);
  expect(node.spec).toMatchObject({ podCIDR: podCidr.split(',')[0], podCIDRs: podCidr.split(',') });
  const internal = (node.status?.addresses ?? []).filter(({ type }) => type === 'InternalIP');
  const onNode = internal.map(({ address }) => address);
  expect(onNode).toEqual(await nodeIps());

  const ips = (status.podIPs ?? []).map(({ ip }) => ip);
  const ranges = podCidr.split(',').map((cidr) => parseIpRange(cidr) as IpRange);
  expect(ips.map((ip, at) => rangeContains(ranges[at] as IpRange, parseIp(ip) as IpAddress))).toEqual([true, true]);
  expect(status).toMatchObject({ podIP: ips[0], hostIP: onNode[0], hostIPs: onNode.map((ip) => ({ ip })) });
  expect(ofHost.podIPs).toEqual(onNode.map((ip) => ({ ip })));

  const hosts = await inPod('client', 'cat /etc/hosts');
  for (const ip of ips) expect(hosts).toContain(`\n${ip}\tclient`);
  expect(await inPod('client', 'echo "$podIPs $hostIPs"')).toBe(`${ips.join()} ${onNode.join()}`);
  expect(await lifepod.kubectlOk('get', 'pod', 'client', '-o', 'wide')).toContain(` ${ips[0]} `);
  expect((await lifepod.cli('status')).stdout).toContain(`Pods ${podCidr}, Services ${serviceCidr}`);
});

test('a Pod reaches a Service of two families by both cluster IPs, and the machine by its node port in both families, also after kill -9 of the engine', async () => {
  const { clusterIPs = [], ipFamilies, ports } = await create('web', { type: 'NodePort' });
  expect(ipFamilies).toEqual(['IPv4', 'IPv6']);
  const nodePort = ports?.[0]?.nodePort as number;
  const [, ipv6] = podRanges(podCidr);
  const onMachine = ['127.0.0.1', ipv6?.gateway as string, ...(await nodeIps())];
  const machineReaches = async (): Promise<void> => {
    for (const ip of onMachine) await expect.poll(() => askFromMachine(ip, nodePort), SOON).toBe('web');
  };
  const podsReach = async (): Promise<void> => {
    for (const from of ['client', 'web'])
      for (const ip of clusterIPs) await expect.poll(() => askFrom(from, ip, 80), SOON).toBe('web');
  };
  expect(clusterIPs.map((ip) => parseIp(ip)?.family)).toEqual(['IPv4', 'IPv6']);
  await machineReaches();
  await podsReach();
  const before = record.now('web').status?.podIPs;
  await lifepod.kill('SIGKILL');
  await machineReaches();
  await lifepod.up();
  await recordAgain();
  await machineReaches();
  await podsReach();
  expect((await record.until('web', isReady)).status?.podIPs).toEqual(before);
});

test('a Service of IPv6 only has an IPv6 cluster IP, which a Pod reaches', async () => {
  const { clusterIP = '', clusterIPs } = await create('six', { ipFamilyPolicy: 'SingleStack', ipFamilies: ['IPv6'] });
  expect(clusterIPs).toEqual([clusterIP]);
  expect(parseIp(clusterIP)?.family).toBe('IPv6');
  await expect.poll(() => askFrom('client', clusterIP, 80), SOON).toBe('web');
});

test('the name of a headless Service leads to the addresses of its Pods in both families', async () => {
  await create('headless', { clusterIP: 'None' });
  const ips = (record.now('web').status?.podIPs ?? []).map(({ ip }) => ip);
  const name = 'headless.default.svc.cluster.local';
  for (const [type, ip] of [
    ['a', ips[0]],
    ['aaaa', ips[1]],
  ] as const) {
    const line = new RegExp(`^Address(?: \\d+)?: ${ip}$`, 'm');
    await expect.poll(() => inPod('client', `nslookup -type=${type} ${name}`), SOON).toMatch(line);
  }
  await expect.poll(() => askFrom('client', name, 8080), SOON).toBe('web');
});

test('a NetworkPolicy with an IPv6 ipBlock allows this block only, and nothing of IPv4', async () => {
  await start('other');
  const [ipv4 = '', ipv6 = ''] = (record.now('web').status?.podIPs ?? []).map(({ ip }) => ip);
  const allowed = record.now('client').status?.podIPs?.[1]?.ip;
  for (const ip of [ipv4, ipv6]) expect(await askFrom('other', ip, 8080)).toBe('web');
  await lifepod.apply({
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: 'six' },
    spec: { podSelector: { matchLabels: web }, ingress: [{ from: [{ ipBlock: { cidr: `${allowed}/128` } }] }] },
  });
  // A client whose packets are dropped waits until its timeout, so the two clients ask at the same time.
  await Promise.all([ipv4, ipv6].map((ip) => expect.poll(() => askFrom('other', ip, 8080), SOON).toBe('')));
  expect(await askFrom('client', ipv6, 8080)).toBe('web');
  expect(await askFrom('client', ipv4, 8080)).toBe('');
  await lifepod.delete('networkpolicy', 'six');
  for (const ip of [ipv4, ipv6]) await expect.poll(() => askFrom('other', ip, 8080), SOON).toBe('web');
});
