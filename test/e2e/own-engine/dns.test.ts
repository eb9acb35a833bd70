import { Resolver } from 'node:dns/promises';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { EndpointSlice, Service } from '../../../src/api/generated/types.ts';
import { dnsProcesses } from '../../../src/engine/leftovers.ts';
import { question } from '../../../src/network/dns-server/dns-client-fixture.ts';
import { type NameServer, startNameServer } from '../../../src/network/dns-server/name-server-fixture.ts';
import { withLength } from '../../../src/network/dns-server/tcp.ts';
import { scratchFolder } from '../../support/lifepod.ts';
import { lifepod, useOwnEngine } from '../../support/own-engine.ts';

/** The machine's name server, to which the cluster DNS forwards, on a loopback address that other tests do not use. */
const UPSTREAM = '127.53.28.1';
let upstream: NameServer;
beforeAll(async () => {
  upstream = await startNameServer(
    ({ questions: [{ name = '' } = {}] = [] }) =>
      name === 'outside.test' ? { answers: [{ type: 'A', name, data: '192.0.2.7', ttl: 60 }] } : { flags: 0x183 },
    UPSTREAM,
    53,
  );
});
afterAll(() => upstream?.close());

const scratch = scratchFolder();
afterAll(() => scratch.remove());
useOwnEngine(() => {
  const path = join(scratch.path, 'resolv.conf');
  writeFileSync(path, `nameserver ${UPSTREAM}\n`);
  return { options: ['--resolv-conf', path] };
});

const pod = (name: string, more: object = {}, command = ['sleep', '3600']) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels: { app: name } },
  spec: {
    terminationGracePeriodSeconds: 0,
    containers: [{ name: 'app', image: 'busybox:1.28', command }],
    ...more,
  },
});
const service = (name: string, spec: object) => ({ apiVersion: 'v1', kind: 'Service', metadata: { name }, spec });
const lookUp = async (name: string): Promise<string> => (await lifepod.exec('client', '--', 'nslookup', name)).stdout;

test('Pods resolve Services, hosts of headless Services, Pods and addresses, and the names of the cluster itself', async () => {
  await lifepod.apply(pod('client'));
  await lifepod.apply(pod('server', { hostname: 'web-0', subdomain: 'db' }));
  await lifepod.apply(service('db', { clusterIP: 'None', selector: { app: 'server' }, ports: [{ port: 80 }] }));
  await lifepod.apply(service('web', { selector: { app: 'server' }, ports: [{ port: 80 }] }));
  await lifepod.wait('--for=condition=Ready', 'pod/client', 'pod/server');
  const { status } = await lifepod.get<{ status: { podIP: string } }>('pod', 'server');
  const { spec } = await lifepod.get<{ spec: { clusterIP: string } }>('service', 'web');
  const dashed = status.podIP.replaceAll('.', '-');
  for (const name of ['db', 'web-0.db.default.svc.cluster.local', `${dashed}.default.pod.cluster.local`])
    await expect.poll(() => lookUp(name), { timeout: 30_000 }).toContain(`Address: ${status.podIP}`);
  expect(await lookUp('web')).toContain(`Address: ${spec.clusterIP}`);
  expect(await lookUp(status.podIP)).toContain('web-0.db.default.svc.cluster.local');
  expect(await lookUp('kubernetes.default.svc.cluster.local')).toContain('kubernetes.default.svc.cluster.local');
});

const KUBE_DNS = 'kube-dns.kube-system.svc.cluster.local';

test('the Service kube-dns answers at its cluster IP over UDP and TCP, and is created again when it is deleted', async () => {
  const inSystem = ['-n', 'kube-system'];
  expect(await lifepod.kubectlOk(...inSystem, 'get', 'svc', 'kube-dns')).toMatch(
    /^kube-dns +ClusterIP +[\d.]+ +<none> +53\/UDP,53\/TCP +/m,
  );
  const kubeDns = () => lifepod.get<Service>(...inSystem, 'service', 'kube-dns');
  const { metadata, spec } = await kubeDns();
  const { clusterIP = '' } = spec ?? {};
  const slice = await lifepod.get<EndpointSlice>(...inSystem, 'endpointslice', 'kube-dns');
  expect(slice.endpoints?.map(({ addresses }) => addresses)).toEqual([[clusterIP]]);
  expect(await lifepod.kubectlOk('cluster-info')).toContain('CoreDNS is running at');
  const inClient = async (...command: string[]) => (await lifepod.execOk('client', '--', ...command)).trim();
  const found = new RegExp(`Name:\\s+${KUBE_DNS}\\s+Address: ${clusterIP}$`, 'm');
  expect(await inClient('nslookup', KUBE_DNS)).toMatch(found);
  expect(await inClient('nslookup', KUBE_DNS, clusterIP)).toMatch(found);
  // busybox's nslookup does not use TCP. The response ends with the address.
  const query = withLength(question(KUBE_DNS)).toString('base64');
  const response = await inClient(
    'sh',
    '-c',
    `echo ${query} | base64 -d | nc -w 10 ${clusterIP} 53 | hexdump -v -e '1/1 "%02x"'`,
  );
  expect(response).toMatch(new RegExp(`${Buffer.from(clusterIP.split('.').map(Number)).toString('hex')}$`));
  await lifepod.kubectlOk(...inSystem, 'delete', 'svc', 'kube-dns');
  const uid = async () =>
    (await lifepod.kubectl(...inSystem, 'get', 'svc', 'kube-dns', '-o', 'jsonpath={.metadata.uid}')).stdout;
  await expect.poll(uid, { timeout: 20_000 }).toMatch(/./);
  expect(await uid()).not.toBe(metadata.uid);
  expect((await kubeDns()).spec?.clusterIP).toBe(clusterIP);
});

async function clusterDns(): Promise<Resolver> {
  const { spec } = await lifepod.get<Service>('-n', 'kube-system', 'service', 'kube-dns');
  const resolver = new Resolver({ timeout: 5000 });
  resolver.setServers([spec?.clusterIP ?? '']);
  return resolver;
}
const inDefault = (name: string): string => `${name}.default.svc.cluster.local`;

test('clients resolve named ports, aliases, names that do not exist, large answers and names of other domains', async () => {
  const dns = await clusterDns();
  const ports = [{ name: 'http', port: 8080 }];
  await lifepod.apply(service('ported', { selector: { app: 'none' }, ports }));
  await lifepod.apply(service('alias', { type: 'ExternalName', externalName: 'outside.test' }));
  await lifepod.apply(service('many', { clusterIP: 'None', ports }));
  const addresses = Array.from({ length: 200 }, (_, index) => `192.0.2.${index + 1}`);
  await lifepod.apply({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'many-1', labels: { 'kubernetes.io/service-name': 'many' } },
    addressType: 'IPv4',
    ports,
    endpoints: addresses.map((address) => ({ addresses: [address] })),
  });
  const srv = () => dns.resolveSrv(`_http._tcp.${inDefault('ported')}`).catch(() => []);
  await expect
    .poll(srv, { timeout: 30_000 })
    .toEqual([expect.objectContaining({ name: inDefault('ported'), port: 8080 })]);
  const cname = () => dns.resolveCname(inDefault('alias')).catch(() => []);
  await expect.poll(cname, { timeout: 30_000 }).toEqual(['outside.test']);
  expect(await dns.resolve4(inDefault('alias'))).toEqual(['192.0.2.7']);
  expect(await dns.resolve4('outside.test')).toEqual(['192.0.2.7']);
  for (const name of [inDefault('none'), 'none.test'])
    await expect(dns.resolve4(name)).rejects.toMatchObject({ code: 'ENOTFOUND' });
  // The answer does not fit into a datagram, so the client asks again over TCP.
  const many = () => dns.resolve4(inDefault('many')).catch(() => []);
  await expect.poll(async () => (await many()).sort(), { timeout: 30_000 }).toEqual(addresses.sort());
});

test('the DNS answers while the engine does not run at all', async () => {
  const dns = await clusterDns();
  process.kill(lifepod.pid(), 'SIGSTOP');
  try {
    expect(await dns.resolve4(inDefault('kubernetes'))).toHaveLength(1);
  } finally {
    process.kill(lifepod.pid(), 'SIGCONT');
  }
});

test('a Pod resolves without a failure while the engine is killed and started again', async () => {
  const loop = 'while :; do nslookup web.default.svc.cluster.local >/dev/null && echo ok || echo failed; done';
  await lifepod.apply(pod('loop', {}, ['sh', '-c', loop]));
  await lifepod.wait('--for=condition=Ready', 'pod/loop');
  const [pid] = dnsProcesses(lifepod.dataDir);
  await lifepod.kill('SIGKILL');
  await lifepod.up();
  expect(dnsProcesses(lifepod.dataDir)).toEqual([pid]);
  const lines = (await lifepod.kubectlOk('logs', 'loop')).trim().split('\n');
  expect(lines.length).toBeGreaterThan(20);
  expect(lines.filter((line) => line !== 'ok')).toEqual([]);
});

test('a DNS process that was killed is started again, and lifepod down ends it', async () => {
  const [before] = dnsProcesses(lifepod.dataDir);
  process.kill(before ?? 0, 'SIGKILL');
  await expect.poll(() => dnsProcesses(lifepod.dataDir), { timeout: 20_000 }).not.toEqual([before]);
  await expect.poll(() => lookUp('web'), { timeout: 30_000 }).toContain('web.default.svc.cluster.local');
  expect((await lifepod.cli('status')).stdout).toMatch(/memory .*DNS \d+ MiB/);
  await lifepod.cliOk('down');
  expect(dnsProcesses(lifepod.dataDir)).toEqual([]);
});
