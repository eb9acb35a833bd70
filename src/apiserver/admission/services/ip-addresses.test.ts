import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { IPAddress, Service, ServiceCIDR, ServiceSpec } from '../../../api/generated/types.ts';
import { IP_ADDRESSES, SERVICE_CIDRS } from '../../../api/resources.ts';
import type { KubeObject } from '../../../machinery/meta.ts';
import type { ResourceApi } from '../../../ports/backend.ts';
import { createMemoryStore } from '../../../store/memory/memory-store.ts';
import type { Store, Txn } from '../../../store/store.ts';
import { failure, object, SERVICES, startRegistry } from '../../registry/testing.ts';
import { addressesOf, nodePortsOf } from './uses.ts';

const service = (name: string, spec: Partial<ServiceSpec> = {}, metadata: object = {}): KubeObject =>
  object('Service', name, { spec: { ports: [{ port: 80 }], ...spec } }, metadata);
const specOf = (given: unknown): ServiceSpec => (given as Service).spec as ServiceSpec;
const place = { namespace: 'default' };
const DUAL = '10.96.0.0/24,fd00:10:96::/112';
const EXTERNAL = { type: 'ExternalName', externalName: 'a.b' };

const addresses = async (registry: ResourceApi): Promise<Record<string, string>> => {
  const { items } = await registry.list(IP_ADDRESSES, {});
  return Object.fromEntries(
    (items as IPAddress[]).map(({ metadata, spec }) => [
      metadata.name,
      `${spec?.parentRef?.namespace}/${spec?.parentRef?.name}`,
    ]),
  );
};

const serviceCidr = (name: string, ...cidrs: string[]) =>
  object('ServiceCIDR', name, { apiVersion: 'networking.k8s.io/v1', spec: { cidrs } });

describe('IPAddresses of Services', () => {
  test('an IPAddress exists exactly while a Service has the address', async () => {
    const { registry } = await startRegistry();
    const own = { '10.96.0.1': 'default/kubernetes' };
    expect(await addresses(registry)).toEqual(own);
    await registry.create(SERVICES, 'default', service('a', { clusterIP: '10.96.0.9' }));
    await registry.create(SERVICES, 'default', service('headless', { clusterIP: 'None' }));
    await registry.create(SERVICES, 'default', service('external', EXTERNAL));
    expect(await addresses(registry)).toEqual({ ...own, '10.96.0.9': 'default/a' });
    await registry.update(SERVICES, service('a', EXTERNAL, place));
    expect(await addresses(registry)).toEqual(own);
    const { clusterIP = '' } = specOf(await registry.update(SERVICES, service('a', {}, place)));
    expect(await addresses(registry)).toEqual({ ...own, [clusterIP]: 'default/a' });
    await registry.delete(SERVICES, 'default', 'a');
    expect(await addresses(registry)).toEqual(own);
  });

  test('an IPAddress has the labels of the allocator', async () => {
    const { registry } = await startRegistry({ serviceCidr: DUAL });
    await registry.create(SERVICES, 'default', service('a', { clusterIP: 'FD00:10:96::9', ipFamilies: ['IPv6'] }));
    expect(await registry.get(IP_ADDRESSES, undefined, 'fd00:10:96::9')).toMatchObject({
      metadata: {
        labels: {
          'ipaddress.kubernetes.io/ip-family': 'IPv6',
          'ipaddress.kubernetes.io/managed-by': 'ipallocator.k8s.io',
        },
        uid: expect.stringMatching(/^[0-9a-f-]{36}$/),
        creationTimestamp: '2026-01-01T00:00:00Z',
      },
      spec: { parentRef: { resource: 'services', namespace: 'default', name: 'a' } },
    });
  });

  test('the IPAddress of a Service with a finalizer is deleted with the finalizer', async () => {
    const { registry } = await startRegistry();
    await registry.create(SERVICES, 'default', service('a', { clusterIP: '10.96.0.9' }, { finalizers: ['a.b/c'] }));
    await registry.delete(SERVICES, 'default', 'a');
    expect(await addresses(registry)).toHaveProperty(['10.96.0.9']);
    const merge = 'application/merge-patch+json';
    await registry.patch(SERVICES, 'default', 'a', merge, { metadata: { finalizers: null } });
    expect(await addresses(registry)).not.toHaveProperty(['10.96.0.9']);
  });

  test('the address of another object is not allocated, and is kept', async () => {
    const { registry } = await startRegistry();
    const parentRef = { group: 'a.b', resource: 'gateways', name: 'g' };
    const taken = object('IPAddress', '10.96.0.9', { apiVersion: 'networking.k8s.io/v1', spec: { parentRef } });
    await registry.create(IP_ADDRESSES, undefined, taken);
    expect(
      (await failure(registry.create(SERVICES, 'default', service('a', { clusterIP: '10.96.0.9' })))).message,
    ).toContain('failed to allocate IP 10.96.0.9: provided IP is already allocated');
  });

  test('a dry run creates and deletes no IPAddress', async () => {
    const { registry } = await startRegistry();
    await registry.create(SERVICES, 'default', service('b', { clusterIP: '10.96.0.9' }), { dryRun: true });
    expect(Object.keys(await addresses(registry))).toEqual(['10.96.0.1']);
    await registry.delete(SERVICES, 'default', 'kubernetes', { dryRun: true });
    expect(Object.keys(await addresses(registry))).toEqual(['10.96.0.1']);
  });
});

describe('ServiceCIDRs', () => {
  test('a Service gets an address of an additional ServiceCIDR when the default one is full', async () => {
    const { registry } = await startRegistry({ serviceCidr: '10.9.0.0/28' });
    const outside = service('far', { clusterIP: '10.9.1.1' });
    expect((await failure(registry.create(SERVICES, 'default', outside))).message).toContain(
      'the provided network does not match the current range',
    );
    for (let n = 0; n < 12; n++) await registry.create(SERVICES, 'default', service(`s${n}`));
    expect((await failure(registry.create(SERVICES, 'default', service('more')))).message).toContain('range is full');
    await registry.create(SERVICE_CIDRS, undefined, serviceCidr('more', '10.9.1.0/28'));
    expect(specOf(await registry.create(SERVICES, 'default', service('more'))).clusterIP).toMatch(/^10\.9\.1\.\d+$/);
    expect(specOf(await registry.create(SERVICES, 'default', outside)).clusterIP).toBe('10.9.1.1');
  });

  test.each([
    ['is being deleted', { finalizers: ['a.b/c'] }, true, []],
    [
      'is not ready',
      {},
      false,
      [{ type: 'Ready', status: 'False', reason: 'A', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' }],
    ],
  ])('a Service gets no address of a ServiceCIDR that %s', async (_, metadata, deleted, conditions) => {
    const { registry } = await startRegistry();
    const { apiVersion, kind, spec } = serviceCidr('more', '10.9.1.0/28') as ServiceCIDR;
    const created = await registry.create(SERVICE_CIDRS, undefined, {
      apiVersion,
      kind,
      metadata: { name: 'more', ...metadata },
      spec,
    } as KubeObject);
    if (deleted) await registry.delete(SERVICE_CIDRS, undefined, 'more');
    else
      await registry.update(SERVICE_CIDRS, { ...created, status: { conditions } } as KubeObject, {
        subresource: 'status',
      });
    const { message } = await failure(registry.create(SERVICES, 'default', service('a', { clusterIP: '10.9.1.1' })));
    expect(message).toContain('the provided network does not match the current range');
  });
});

describe('Services of two IP families', () => {
  const families = (spec: ServiceSpec) => (spec.clusterIPs ?? []).map((ip) => (ip.includes(':') ? 'IPv6' : 'IPv4'));

  test.each<[string, Partial<ServiceSpec>, string, string[]]>([
    ['without settings', {}, 'SingleStack', ['IPv4']],
    ['that prefers two', { ipFamilyPolicy: 'PreferDualStack' }, 'PreferDualStack', ['IPv4', 'IPv6']],
    [
      'that requires two, IPv6 first',
      { ipFamilyPolicy: 'RequireDualStack', ipFamilies: ['IPv6'] },
      'RequireDualStack',
      ['IPv6', 'IPv4'],
    ],
    ['that names IPv6', { ipFamilies: ['IPv6'] }, 'SingleStack', ['IPv6']],
    ['with an IPv6 address', { clusterIP: 'fd00:10:96::9' }, 'SingleStack', ['IPv6']],
    [
      'with both addresses',
      { clusterIP: '10.96.0.9', clusterIPs: ['10.96.0.9', 'fd00:10:96::9'], ipFamilyPolicy: 'PreferDualStack' },
      'PreferDualStack',
      ['IPv4', 'IPv6'],
    ],
  ])('a Service %s gets its addresses', async (_, given, policy, expected) => {
    const { registry } = await startRegistry({ serviceCidr: DUAL });
    const spec = specOf(await registry.create(SERVICES, 'default', service('a', given)));
    expect(spec).toMatchObject({ ipFamilyPolicy: policy, ipFamilies: expected, clusterIP: spec.clusterIPs?.[0] });
    expect(families(spec)).toEqual(expected);
    expect(await addresses(registry)).toMatchObject(
      Object.fromEntries((spec.clusterIPs ?? []).map((ip) => [ip, 'default/a'])),
    );
  });

  test('a Service gets and releases its second address with its policy', async () => {
    const { registry } = await startRegistry({ serviceCidr: DUAL });
    const first = specOf(await registry.create(SERVICES, 'default', service('a')));
    const set = async (ipFamilyPolicy: string) =>
      specOf(
        await registry.patch(SERVICES, 'default', 'a', 'application/merge-patch+json', { spec: { ipFamilyPolicy } }),
      );
    const both = await set('PreferDualStack');
    expect(families(both)).toEqual(['IPv4', 'IPv6']);
    expect(both.clusterIPs?.[0]).toBe(first.clusterIP);
    expect(Object.values(await addresses(registry)).filter((parent) => parent === 'default/a')).toHaveLength(2);
    expect(await set('SingleStack')).toMatchObject({ clusterIPs: first.clusterIPs, ipFamilies: ['IPv4'] });
    expect(Object.values(await addresses(registry)).filter((parent) => parent === 'default/a')).toHaveLength(1);
  });

  test('a Service that prefers two families stays as it is when the second range is added', async () => {
    const store = createMemoryStore();
    const { registry } = await startRegistry({ store });
    const created = await registry.create(SERVICES, 'default', service('a', { ipFamilyPolicy: 'PreferDualStack' }));
    expect(specOf(created).ipFamilies).toEqual(['IPv4']);
    const dual = await startRegistry({ store, serviceCidr: DUAL });
    const labeled = { ...created, metadata: { ...created.metadata, labels: { a: 'b' } } };
    expect(specOf(await dual.registry.update(SERVICES, labeled)).ipFamilies).toEqual(['IPv4']);
    expect(
      specOf(await dual.registry.create(SERVICES, 'default', service('b', { ipFamilyPolicy: 'PreferDualStack' })))
        .ipFamilies,
    ).toEqual(['IPv4', 'IPv6']);
  });
});

/** Simulates that the process is killed during a transaction, before or after the commit. */
function mortalStore(store: Store): Store & { dieIn: number; beforeCommit: boolean } {
  const mortal = {
    ...store,
    dieIn: Number.POSITIVE_INFINITY,
    beforeCommit: true,
    async txn(txn: Txn) {
      const dies = --mortal.dieIn === 0;
      if (dies && mortal.beforeCommit) throw new Error('killed before the commit');
      const result = await store.txn(txn);
      if (dies) throw new Error('killed after the commit');
      return result;
    },
  };
  return mortal;
}

const NAMES = ['a', 'b', 'c', 'd'];
const portsWith = (nodePort: fc.Arbitrary<number>) =>
  fc.constantFrom([80], [53, 53], [53, 80]).chain((numbers) =>
    fc.tuple(...numbers.map(() => nodePort)).map((nodePorts) =>
      numbers.map((port, index) => ({
        name: `p${index}`,
        port,
        protocol: index === 0 ? 'TCP' : 'UDP',
        ...(nodePorts[index] ? { nodePort: nodePorts[index] } : {}),
      })),
    ),
  );
const ipFamilyPolicy = fc.constantFrom('SingleStack', 'PreferDualStack', 'RequireDualStack');
const clusterIP = fc.constantFrom('10.9.0.3', '10.9.0.4', 'fd00::3', '', '', '');
const requested = portsWith(fc.constantFrom(0, 0, 30_001, 30_002));
const specs: fc.Arbitrary<Partial<ServiceSpec>> = fc.oneof(
  fc.record({ clusterIP, ipFamilyPolicy, ports: portsWith(fc.constant(0)) }),
  fc.record({ type: fc.constant('NodePort'), clusterIP, ports: requested }),
  fc.record({
    type: fc.constant('LoadBalancer'),
    externalTrafficPolicy: fc.constantFrom('Cluster', 'Local'),
    allocateLoadBalancerNodePorts: fc.boolean(),
    ports: requested,
  }),
  fc.constantFrom(EXTERNAL, { clusterIP: 'None' }),
);
const steps = fc.record({
  verb: fc.constantFrom('create', 'create', 'create', 'update', 'update', 'delete'),
  name: fc.constantFrom(...NAMES),
  spec: specs,
  /** The number of the transaction in which the process dies; 0 if it survives. */
  dieIn: fc.constantFrom(0, 0, 0, 0, 1, 2),
  beforeCommit: fc.boolean(),
});

test('no two Services ever share an address or node port, and no address is leaked, whenever the process is killed', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(steps, { minLength: 1, maxLength: 4 }), { minLength: 3, maxLength: 8 }),
      async (rounds) => {
        const inner = createMemoryStore();
        const options = { serviceCidr: '10.9.0.0/28,fd00::/124' };
        let store = mortalStore(inner);
        let { registry } = await startRegistry({ ...options, store });
        for (const round of rounds) {
          store.dieIn = Math.max(...round.map(({ dieIn }) => dieIn)) || Number.POSITIVE_INFINITY;
          store.beforeCommit = round[0]?.beforeCommit === true;
          await Promise.allSettled(
            round.map(({ verb, name, spec }) =>
              verb === 'delete'
                ? registry.delete(SERVICES, 'default', name)
                : verb === 'create'
                  ? registry.create(SERVICES, 'default', service(name, spec))
                  : registry.update(SERVICES, service(name, spec, place)),
            ),
          );
          registry.close();
          store = mortalStore(inner);
          ({ registry } = await startRegistry({ ...options, store }));
          await checkUses(registry);
        }
        registry.close();
      },
    ),
    { numRuns: 50 },
  );
});

async function checkUses(registry: ResourceApi): Promise<void> {
  const { items } = await registry.list(SERVICES, {});
  const uses = (items as Service[]).flatMap(({ metadata, spec = {} }) =>
    addressesOf(spec).map((address) => [address, `${metadata.namespace}/${metadata.name}`]),
  );
  expect(await addresses(registry)).toEqual(Object.fromEntries(uses));
  const ports = (items as Service[]).flatMap(({ spec = {} }) => nodePortsOf(spec));
  expect(new Set(uses.map(([address]) => address)).size).toBe(uses.length);
  expect(new Set(ports).size).toBe(ports.length);
}
