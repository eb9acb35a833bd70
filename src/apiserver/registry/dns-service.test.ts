import { expect, test } from 'vitest';
import type { EndpointSlice, Service } from '../../api/generated/types.ts';
import { ENDPOINT_SLICES } from '../../api/resources.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import type { ResourceApi } from '../../ports/backend.ts';
import { ensureDnsService } from './dns-service.ts';
import { object, SERVICE_CIDR, SERVICES, startRegistry } from './testing.ts';

const NAMESPACE = 'kube-system';
const DUAL = '10.96.0.0/24,fd00:10:96::/112';
const ADDRESS = '10.96.0.10';

const serviceOf = async (api: ResourceApi) => (await api.get(SERVICES, NAMESPACE, 'kube-dns')) as Service;
const sliceOf = async (api: ResourceApi) => (await api.get(ENDPOINT_SLICES, NAMESPACE, 'kube-dns')) as EndpointSlice;
const versionsOf = async (api: ResourceApi) =>
  [await serviceOf(api), await sliceOf(api)].map(({ metadata }) => `${metadata.uid} ${metadata.resourceVersion}`);

const foreign = (name: string, spec: object, metadata: object = {}): KubeObject =>
  object('Service', name, { spec: { ports: [{ port: 80 }], ...spec } }, metadata);

test('the Service kube-dns has the address of the DNS, and its slice names the same address', async () => {
  const { registry } = await startRegistry();
  await ensureDnsService(registry, SERVICE_CIDR);
  const service = await serviceOf(registry);
  expect(service.metadata.labels).toEqual({
    'k8s-app': 'kube-dns',
    'kubernetes.io/cluster-service': 'true',
    'kubernetes.io/name': 'CoreDNS',
  });
  expect(service.spec).toMatchObject({
    type: 'ClusterIP',
    clusterIP: ADDRESS,
    clusterIPs: [ADDRESS],
    ipFamilyPolicy: 'SingleStack',
    ipFamilies: ['IPv4'],
    ports: [
      { name: 'dns', protocol: 'UDP', port: 53, targetPort: 53 },
      { name: 'dns-tcp', protocol: 'TCP', port: 53, targetPort: 53 },
    ],
  });
  expect(service.spec).not.toHaveProperty('selector');
  expect(await sliceOf(registry)).toMatchObject({
    metadata: { labels: { 'kubernetes.io/service-name': 'kube-dns' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: [ADDRESS], conditions: { ready: true } }],
    ports: [
      { name: 'dns', protocol: 'UDP', port: 53 },
      { name: 'dns-tcp', protocol: 'TCP', port: 53 },
    ],
  });
});

test('with two ranges, the Service kube-dns has only an address of the family of the DNS', async () => {
  const { registry } = await startRegistry({ serviceCidr: DUAL });
  await ensureDnsService(registry, DUAL);
  expect((await serviceOf(registry)).spec).toMatchObject({ clusterIPs: [ADDRESS], ipFamilies: ['IPv4'] });
});

test.each(['PreferDualStack', 'RequireDualStack'])(
  'a Service kube-dns with the policy %s gives up its second address, and keeps the first one',
  async (ipFamilyPolicy) => {
    const { registry } = await startRegistry({ serviceCidr: DUAL });
    const stored = foreign('kube-dns', { clusterIP: ADDRESS, ipFamilyPolicy });
    const { metadata, spec } = (await registry.create(SERVICES, NAMESPACE, stored)) as Service;
    expect(spec?.clusterIPs).toHaveLength(2);
    await ensureDnsService(registry, DUAL);
    const service = await serviceOf(registry);
    expect(service.metadata.uid).toBe(metadata.uid);
    expect(service.spec).toMatchObject({ ipFamilyPolicy: 'SingleStack', clusterIPs: [ADDRESS], ipFamilies: ['IPv4'] });
    const before = await versionsOf(registry);
    await ensureDnsService(registry, DUAL);
    expect(await versionsOf(registry)).toEqual(before);
  },
);

test('a Service kube-dns whose address is not of the family of the DNS is replaced', async () => {
  const { registry } = await startRegistry({ serviceCidr: DUAL });
  await registry.create(SERVICES, 'default', foreign('own-dns', { clusterIP: ADDRESS }));
  await registry.create(SERVICES, NAMESPACE, foreign('kube-dns', { ipFamilies: ['IPv6'] }));
  await ensureDnsService(registry, DUAL);
  expect((await serviceOf(registry)).spec).toMatchObject({ ipFamilies: ['IPv4'] });
});

test.each([SERVICE_CIDR, DUAL])(
  'nothing is written if the Service kube-dns and its slice exist in %s',
  async (serviceCidr) => {
    const { registry } = await startRegistry({ serviceCidr });
    await ensureDnsService(registry, serviceCidr);
    const before = await versionsOf(registry);
    await ensureDnsService(registry, serviceCidr);
    expect(await versionsOf(registry)).toEqual(before);
  },
);

test('a deleted Service kube-dns and a deleted slice are created again', async () => {
  const { registry } = await startRegistry();
  await ensureDnsService(registry, SERVICE_CIDR);
  await registry.delete(SERVICES, NAMESPACE, 'kube-dns');
  await registry.delete(ENDPOINT_SLICES, NAMESPACE, 'kube-dns');
  await ensureDnsService(registry, SERVICE_CIDR);
  expect((await serviceOf(registry)).spec?.clusterIP).toBe(ADDRESS);
  expect((await sliceOf(registry)).endpoints).toHaveLength(1);
});

test('changed ports, labels and endpoints of kube-dns are reverted, and other labels are kept', async () => {
  const { registry } = await startRegistry();
  await ensureDnsService(registry, SERVICE_CIDR);
  const { uid } = (await serviceOf(registry)).metadata;
  const merge = 'application/merge-patch+json';
  const labels = { 'k8s-app': 'mine', own: 'kept' };
  const ports = [{ name: 'dns', port: 54, protocol: 'UDP' }];
  await registry.patch(SERVICES, NAMESPACE, 'kube-dns', merge, { metadata: { labels }, spec: { ports } });
  await registry.patch(ENDPOINT_SLICES, NAMESPACE, 'kube-dns', merge, { endpoints: [] });
  await ensureDnsService(registry, SERVICE_CIDR);
  const service = await serviceOf(registry);
  expect(service.metadata).toMatchObject({ uid, labels: { 'k8s-app': 'kube-dns', own: 'kept' } });
  expect(service.spec?.ports?.map(({ name, port }) => `${name} ${port}`)).toEqual(['dns 53', 'dns-tcp 53']);
  expect((await sliceOf(registry)).endpoints).toMatchObject([{ addresses: [ADDRESS] }]);
});

test('a slice kube-dns of another address type is replaced', async () => {
  const { registry } = await startRegistry();
  const slice = { apiVersion: 'discovery.k8s.io/v1', addressType: 'IPv6', endpoints: [], ports: [] };
  await registry.create(ENDPOINT_SLICES, NAMESPACE, object('EndpointSlice', 'kube-dns', slice));
  await ensureDnsService(registry, SERVICE_CIDR);
  expect(await sliceOf(registry)).toMatchObject({ addressType: 'IPv4', endpoints: [{ addresses: [ADDRESS] }] });
});

test.each([
  ['with a selector', { clusterIP: ADDRESS, selector: { 'k8s-app': 'kube-dns' } }],
  ['with another address', { clusterIP: '10.96.0.77' }],
  ['without an address', { clusterIP: 'None' }],
  ['that is an alias', { type: 'ExternalName', externalName: 'dns.example' }],
])('a Service kube-dns %s, which a user created, is replaced', async (_, spec) => {
  const { registry } = await startRegistry();
  const { metadata } = await registry.create(SERVICES, NAMESPACE, foreign('kube-dns', spec));
  await ensureDnsService(registry, SERVICE_CIDR);
  const service = await serviceOf(registry);
  expect(service.metadata.uid).not.toBe(metadata.uid);
  expect(service.spec).toMatchObject({ type: 'ClusterIP', clusterIP: ADDRESS });
  expect(service.spec).not.toHaveProperty('selector');
});

test('while another Service has the address of the DNS, kube-dns has another cluster IP, which leads to this address', async () => {
  const { registry } = await startRegistry();
  await registry.create(SERVICES, 'default', foreign('own-dns', { clusterIP: ADDRESS }));
  await ensureDnsService(registry, SERVICE_CIDR);
  const { clusterIP } = (await serviceOf(registry)).spec ?? {};
  expect(clusterIP).toMatch(/^10\.96\.0\.\d+$/);
  expect(clusterIP).not.toBe(ADDRESS);
  expect((await sliceOf(registry)).endpoints).toMatchObject([{ addresses: [ADDRESS] }]);
  const before = await versionsOf(registry);
  await ensureDnsService(registry, SERVICE_CIDR);
  expect(await versionsOf(registry)).toEqual(before);
  await registry.delete(SERVICES, 'default', 'own-dns');
  await ensureDnsService(registry, SERVICE_CIDR);
  expect((await serviceOf(registry)).spec?.clusterIP).toBe(ADDRESS);
});

test('a Service kube-dns with a finalizer of a user is replaced after the finalizer has been removed', async () => {
  const { registry } = await startRegistry();
  await registry.create(SERVICES, NAMESPACE, foreign('kube-dns', { clusterIP: 'None' }, { finalizers: ['a.b/c'] }));
  await ensureDnsService(registry, SERVICE_CIDR);
  const { metadata } = await serviceOf(registry);
  expect(metadata.deletionTimestamp).toBeDefined();
  await ensureDnsService(registry, SERVICE_CIDR);
  expect((await serviceOf(registry)).metadata.resourceVersion).toBe(metadata.resourceVersion);
  await registry.patch(SERVICES, NAMESPACE, 'kube-dns', 'application/merge-patch+json', {
    metadata: { finalizers: null },
  });
  await ensureDnsService(registry, SERVICE_CIDR);
  expect((await serviceOf(registry)).spec?.clusterIP).toBe(ADDRESS);
});
