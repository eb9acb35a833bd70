import { expect, test } from 'vitest';
import type { EndpointSlice, Endpoints } from '../../../api/generated/types.ts';
import { ENDPOINT_SLICES, ENDPOINTS } from '../../../api/resources.ts';
import type { KubeObject } from '../../../machinery/meta.ts';
import type { ResourceApi } from '../../../ports/backend.ts';
import { startRegistry } from '../testing.ts';
import { ensureKubernetesEndpoints } from './kubernetes-endpoints.ts';

const ENDPOINT = { ip: '10.222.0.1', port: 6443 };
const endpointsOf = async (api: ResourceApi) => (await api.get(ENDPOINTS, 'default', 'kubernetes')) as Endpoints;
const sliceOf = async (api: ResourceApi) => (await api.get(ENDPOINT_SLICES, 'default', 'kubernetes')) as EndpointSlice;

test('the Service kubernetes has Endpoints and an EndpointSlice with the address of the API server', async () => {
  const { registry } = await startRegistry();
  await ensureKubernetesEndpoints(registry, ENDPOINT);
  const ports = [{ name: 'https', port: 6443, protocol: 'TCP' }];
  expect(await endpointsOf(registry)).toMatchObject({
    metadata: { labels: { 'endpointslice.kubernetes.io/skip-mirror': 'true' } },
    subsets: [{ addresses: [{ ip: '10.222.0.1' }], ports }],
  });
  expect(await sliceOf(registry)).toMatchObject({
    metadata: { labels: { 'kubernetes.io/service-name': 'kubernetes' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.222.0.1'], conditions: { ready: true } }],
    ports,
  });
});

test('nothing is written if the endpoint of the API server has not changed', async () => {
  const { registry } = await startRegistry();
  await ensureKubernetesEndpoints(registry, ENDPOINT);
  const before = registry.revision();
  await ensureKubernetesEndpoints(registry, ENDPOINT);
  expect(registry.revision()).toBe(before);
});

test('a changed port, and changes of clients to the addresses and labels, are corrected', async () => {
  const { registry } = await startRegistry();
  await ensureKubernetesEndpoints(registry, ENDPOINT);
  const before = await endpointsOf(registry);
  const subsets = [{ addresses: [{ ip: '192.0.2.7' }], ports: [{ port: 1 }] }];
  await registry.update(ENDPOINTS, { ...before, metadata: { ...before.metadata, labels: {} }, subsets } as KubeObject);
  await ensureKubernetesEndpoints(registry, { ...ENDPOINT, port: 7000 });
  const after = await endpointsOf(registry);
  expect(after.subsets).toEqual([
    { addresses: [{ ip: '10.222.0.1' }], ports: [{ name: 'https', port: 7000, protocol: 'TCP' }] },
  ]);
  expect(after.metadata).toMatchObject({ uid: before.metadata.uid, labels: before.metadata.labels });
  expect((await sliceOf(registry)).ports).toEqual([{ name: 'https', port: 7000, protocol: 'TCP' }]);
});
