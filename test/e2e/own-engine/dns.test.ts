/** Tests the names that Pods resolve with the DNS process of an engine, also while the engine is dead and after `lifepod down`. */
import { expect, test } from 'vitest';
import type { EndpointSlice, Service } from '../../../src/api/generated/types.ts';
import { dnsProcesses } from '../../../src/engine/leftovers.ts';
import { question } from '../../../src/network/dns-server/dns-client-fixture.ts';
import { withLength } from '../../../src/network/dns-server/tcp.ts';
import { lifepod, useOwnEngine } from '../../support/own-engine.ts';

useOwnEngine();

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
const lookUp = async (name: string): Promise<string> =>
  (await lifepod.kubectl('exec', 'client', '--', 'nslookup', name)).stdout;

test('Pods resolve Services, hosts of headless Services, Pods and addresses, and the names of the cluster itself', async () => {
  await lifepod.apply(pod('client'));
  await lifepod.apply(pod('server', { hostname: 'web-0', subdomain: 'db' }));
  await lifepod.apply(service('db', { clusterIP: 'None', selector: { app: 'server' }, ports: [{ port: 80 }] }));
  await lifepod.apply(service('web', { selector: { app: 'server' }, ports: [{ port: 80 }] }));
  await lifepod.kubectlOk('wait', '--for=condition=Ready', 'pod/client', 'pod/server', '--timeout=60s');
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
  const inClient = async (...command: string[]) => (await lifepod.kubectlOk('exec', 'client', '--', ...command)).trim();
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

test('a Pod resolves without a failure while the engine is killed and started again', async () => {
  const loop = 'while :; do nslookup web.default.svc.cluster.local >/dev/null && echo ok || echo failed; done';
  await lifepod.apply(pod('loop', {}, ['sh', '-c', loop]));
  await lifepod.kubectlOk('wait', '--for=condition=Ready', 'pod/loop', '--timeout=60s');
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
  expect(await lifepod.cliOk('status')).toMatch(/memory .*DNS \d+ MiB/);
  await lifepod.cliOk('down');
  expect(dnsProcesses(lifepod.dataDir)).toEqual([]);
});
