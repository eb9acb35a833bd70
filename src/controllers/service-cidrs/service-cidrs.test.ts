import { expect, test, vi } from 'vitest';
import type { IPAddress, Service, ServiceCIDR } from '../../api/generated/types.ts';
import { SERVICE_CIDRS, SERVICES } from '../../api/resources.ts';
import { registryBackend, withInformers } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { decide, FINALIZER } from './decide.ts';
import { startServiceCidrs } from './service-cidrs.ts';

const apiVersion = 'networking.k8s.io/v1';
const cidr = (name: string, cidrs: string[], metadata: object = {}): ServiceCIDR => ({
  apiVersion,
  kind: 'ServiceCIDR',
  metadata: { name, ...metadata },
  spec: { cidrs },
});
const address = (name: string, manager = 'ipallocator.k8s.io'): IPAddress => ({
  apiVersion,
  kind: 'IPAddress',
  metadata: { name, labels: { 'ipaddress.kubernetes.io/managed-by': manager } },
  spec: { parentRef: { resource: 'services', namespace: 'a', name: 'b' } },
});
const deleted = { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['x.y/z', FINALIZER] };
const released = { finalizers: ['x.y/z'] };
const blocked = { ready: { status: 'False', reason: 'Terminating' } };

test.each<[string, ServiceCIDR[], IPAddress[], object]>([
  ['no address is in use', [], [], released],
  ['an address is in use', [], [address('10.1.0.1')], blocked],
  ['an address of the second family is in use', [], [address('fd00::1')], blocked],
  ['only an address outside is in use', [], [address('10.2.0.1')], released],
  ['only an address of another allocator is in use', [], [address('10.1.0.1', 'a.b')], released],
  ['another one contains the ranges', [cidr('c', ['10.0.0.0/8', 'fd00::/64'])], [address('10.1.0.1')], released],
  ['another one contains the address', [cidr('c', ['10.1.0.0/28'])], [address('10.1.0.1')], released],
  [
    'another one contains a different address',
    [cidr('c', ['10.1.0.0/28'])],
    [address('10.1.0.1'), address('10.1.0.99')],
    blocked,
  ],
  [
    'the other one is being deleted too',
    [cidr('c', ['10.0.0.0/8', 'fd00::/64'], deleted)],
    [address('10.1.0.1')],
    blocked,
  ],
])('a deleted ServiceCIDR keeps its finalizer as needed if %s', (_, others, addresses, expected) => {
  expect(decide(cidr('a', ['10.1.0.0/24', 'fd00::/112'], deleted), others, addresses)).toMatchObject(expected);
});

test('a ServiceCIDR gets the finalizer and is ready', () => {
  expect(decide(cidr('a', ['10.1.0.0/24']), [], [])).toMatchObject({
    finalizers: [FINALIZER],
    ready: { status: 'True' },
  });
  expect(decide(cidr('a', ['10.1.0.0/24'], { finalizers: [FINALIZER] }), [], [])).not.toHaveProperty('finalizers');
});

test('the deletion of a ServiceCIDR waits for the Services that have its addresses', async () => {
  const backend = await registryBackend();
  const client = clientOf(backend);
  const cidrs = client.resource<ServiceCIDR>(SERVICE_CIDRS);
  const services = client.resource<Service>(SERVICES);
  const stop = new AbortController();
  await startServiceCidrs(
    withInformers({ client, timers: createVirtualTimers(), log: silentLog, signal: stop.signal }),
  );
  const readyOf = async (name: string) =>
    (await cidrs.get(name)).status?.conditions?.map(({ status }) => status).join();
  await vi.waitFor(async () => expect(await readyOf('kubernetes')).toBe('True'));
  await cidrs.create(cidr('more', ['10.97.0.0/24']));
  await vi.waitFor(async () => expect(await readyOf('more')).toBe('True'));
  const spec = { ports: [{ port: 80 }], clusterIP: '10.97.0.5' };
  await services.create({ apiVersion: 'v1', kind: 'Service', metadata: { name: 'web', namespace: 'a' }, spec });
  await cidrs.delete('more');
  await vi.waitFor(async () => expect(await readyOf('more')).toBe('False'));
  await services.delete('web', 'a');
  await vi.waitFor(() =>
    expect(backend.objects(SERVICE_CIDRS).map(({ metadata }) => metadata.name)).toEqual(['kubernetes']),
  );
  stop.abort();
});
