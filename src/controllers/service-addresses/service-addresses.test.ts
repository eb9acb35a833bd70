import { expect, test, vi } from 'vitest';
import type { CoreV1Event, IPAddress, ParentReference, Service } from '../../api/generated/types.ts';
import { EVENTS, IP_ADDRESSES, SERVICES } from '../../api/resources.ts';
import { registryBackend, withInformers } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { type Others, reviewIpAddress, reviewService } from './review.ts';
import { startServiceAddresses } from './service-addresses.ts';

const labels = {
  'ipaddress.kubernetes.io/ip-family': 'IPv4',
  'ipaddress.kubernetes.io/managed-by': 'ipallocator.k8s.io',
};
const parentOf = (name: string): ParentReference => ({ resource: 'services', namespace: 'a', name });
const address = (parentRef: ParentReference, given: Record<string, string> = labels): IPAddress => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'IPAddress',
  metadata: { name: '10.96.0.9', labels: given },
  spec: { parentRef },
});
const service = (name: string, clusterIP = '10.96.0.9'): Service => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace: 'a' },
  spec: { type: 'NodePort', clusterIP, clusterIPs: [clusterIP], ports: [{ port: 80, nodePort: 30_001 }] },
});
const WRONG = 'the ClusterIP [IPv4]: 10.96.0.9 for Service a/web has a wrong reference; repairing';

test.each<[string, Partial<Others> & { has?: IPAddress }, string[]]>([
  ['its IPAddress', { has: address(parentOf('web')) }, []],
  [
    'an address in no range',
    { isInRange: () => false },
    [
      'ClusterIPOutOfRange: Cluster IP [IPv4]: 10.96.0.9 is not within any configured Service CIDR; please recreate service',
    ],
  ],
  ['no IPAddress', {}, ['ClusterIPNotAllocated: Cluster IP [IPv4]: 10.96.0.9 is not allocated; repairing']],
  [
    'the IPAddress of a Gateway',
    { has: address({ group: 'a.b', resource: 'gateways', name: 'c' }) },
    [`ClusterIPNotAllocated: ${WRONG}`],
  ],
  ['the IPAddress of an absent Service', { has: address(parentOf('gone')) }, [`ClusterIPNotAllocated: ${WRONG}`]],
  ['an IPAddress without labels', { has: address(parentOf('web'), {}) }, [`ClusterIPNotAllocated: ${WRONG}`]],
  [
    'the address of another Service',
    { has: address(parentOf('other')), serviceOf: () => service('other') },
    [
      'ClusterIPAlreadyAllocated: Cluster IP [IPv4]:10.96.0.9 was assigned to multiple services; please recreate service',
    ],
  ],
  [
    'the node port of an older Service',
    { has: address(parentOf('web')), isPortOfOlder: () => true },
    ['PortAlreadyAllocated: Port 30001 was assigned to multiple services; please recreate service'],
  ],
])('the finding about a Service with %s', (_, { has, ...others }, expected) => {
  const all: Others = {
    addressOf: () => has,
    serviceOf: () => undefined,
    isInRange: () => true,
    isPortOfOlder: () => false,
    ...others,
  };
  expect(reviewService(service('web'), all).map(({ reason, message }) => `${reason}: ${message}`)).toEqual(expected);
});

test.each<[string, IPAddress, Service | undefined, string | undefined]>([
  ['that a Service has', address(parentOf('web')), service('web'), undefined],
  ['that another allocator made', address(parentOf('web'), {}), undefined, undefined],
  ['whose Service is absent', address(parentOf('web')), undefined, 'IPAddressNotAllocated'],
  [
    'whose Service has another address',
    address(parentOf('web')),
    service('web', '10.96.0.10'),
    'IPAddressWrongReference',
  ],
  [
    'that a Gateway has',
    address({ group: 'a.b', resource: 'gateways', name: 'c' }),
    undefined,
    'IPAddressNotAllocated',
  ],
])('the finding about an IPAddress %s', (_, given, found, expected) => {
  expect(reviewIpAddress(given, () => found)?.reason).toBe(expected);
});

test('missing IPAddresses are created, leaked ones are deleted, and both are reported', async () => {
  const backend = await registryBackend();
  const client = clientOf(backend);
  const stop = new AbortController();
  const names = () =>
    backend
      .objects(IP_ADDRESSES)
      .map(({ metadata }) => metadata.name)
      .sort();
  const reasons = () => (backend.objects(EVENTS) as CoreV1Event[]).map(({ reason }) => reason);
  await client.resource<Service>(SERVICES).create(service('web'));
  const addresses = client.resource<IPAddress>(IP_ADDRESSES);
  await addresses.delete('10.96.0.9');
  const leaked = address(parentOf('gone'));
  await addresses.create({ ...leaked, metadata: { ...leaked.metadata, name: '10.96.0.77' } });
  await startServiceAddresses(
    withInformers({ client, timers: createVirtualTimers(), log: silentLog, signal: stop.signal }),
  );
  await vi.waitFor(() => expect(names()).toEqual(['10.96.0.1', '10.96.0.9']));
  await vi.waitFor(() => expect(reasons().sort()).toEqual(['ClusterIPNotAllocated', 'IPAddressNotAllocated']));
  await addresses.delete('10.96.0.9');
  await vi.waitFor(() => expect(names()).toEqual(['10.96.0.1', '10.96.0.9']));
  stop.abort();
});
