import { expect, test } from 'vitest';
import type { EndpointSubset, Endpoints } from '../../api/generated/types.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { ref, startRegistry } from './testing.ts';

const ENDPOINTS = ref('endpoints');
const endpoints = (subsets: EndpointSubset[]): Endpoints => ({
  apiVersion: 'v1',
  kind: 'Endpoints',
  metadata: { name: 'a' },
  subsets,
});
const at = (...ips: string[]) => ips.map((ip) => ({ ip }));

test('Endpoints are stored in their canonical form on create, update and patch, and a dry run shows this form', async () => {
  const { registry } = await startRegistry();
  const port = { port: 80, protocol: 'TCP' };
  const sent = [
    { addresses: at('10.0.0.2'), ports: [port] },
    { addresses: at('10.0.0.1'), ports: [port] },
  ];
  const stored = [{ addresses: at('10.0.0.1', '10.0.0.2'), ports: [port] }];
  const dry = (await registry.create(ENDPOINTS, 'default', endpoints(sent), { dryRun: true })) as Endpoints;
  expect(dry.subsets).toEqual(stored);
  const created = (await registry.create(ENDPOINTS, 'default', endpoints(sent))) as Endpoints;
  expect(created.subsets).toEqual(stored);
  const more = [...sent, { addresses: at('10.0.0.1'), ports: [port] }];
  const updated = (await registry.update(ENDPOINTS, { ...created, subsets: more } as KubeObject)) as Endpoints;
  expect(updated.subsets).toEqual(stored);
  expect(updated.metadata.resourceVersion).toBe(created.metadata.resourceVersion);
  const body = { subsets: [{ notReadyAddresses: at('10.0.0.4', '10.0.0.3') }] };
  const merge = 'application/merge-patch+json';
  const patched = (await registry.patch(ENDPOINTS, 'default', 'a', merge, body)) as Endpoints;
  expect(patched.subsets).toEqual([{ notReadyAddresses: at('10.0.0.3', '10.0.0.4') }]);
});
