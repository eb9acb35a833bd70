import { describe, expect, test, vi } from 'vitest';
import { createCatalog } from '../../../api/catalog.ts';
import type { Service, ServiceCIDR, ServiceSpec } from '../../../api/generated/types.ts';
import { kinds } from '../../../api/kinds.ts';
import { SERVICE_CIDRS } from '../../../api/resources.ts';
import type { KubeObject } from '../../../machinery/meta.ts';
import { createVirtualTimers } from '../../../platform/virtual-timers.ts';
import { apiFor } from '../../../ports/api-for.ts';
import { createMemoryStore } from '../../../store/memory/memory-store.ts';
import { privilegedOr } from '../../auth/authorization/authorizer.ts';
import { objectKey, resourcePrefix } from '../../cache/keys.ts';
import { loadWatchCache } from '../../cache/watch-cache.ts';
import { bootstrap } from '../../registry/bootstrap.ts';
import { createRegistry } from '../../registry/registry.ts';
import {
  failure,
  NAMESPACES,
  object,
  SERVICE_CIDR,
  SERVICES,
  startRegistry,
  strictLog,
  TEST_USER,
} from '../../registry/testing.ts';
import type { AdmissionPlugin } from '../plugin.ts';
import { admissionPlugins } from '../plugins.ts';
import { parseServiceCidrs } from '../service-range.ts';
import { createServiceAllocator } from './service-allocator.ts';

const service = (name: string, spec: Partial<ServiceSpec> = {}, metadata: object = {}): KubeObject =>
  object('Service', name, { spec: { ports: [{ port: 80 }], ...spec } }, metadata);
const specOf = (object: unknown): ServiceSpec => (object as Service).spec as ServiceSpec;

describe('cluster IPs', () => {
  test('a Service gets a unique cluster IP from the upper part of the range, also in clusterIPs', async () => {
    const { registry } = await startRegistry();
    const given = await Promise.all(
      Array.from({ length: 100 }, (_, n) => registry.create(SERVICES, 'default', service(`s${n}`))),
    );
    const addresses = given.map((created) => specOf(created).clusterIP ?? '');
    expect(new Set(addresses).size).toBe(100);
    for (const [index, created] of given.entries()) {
      const spec = specOf(created);
      expect(spec).toMatchObject({
        clusterIPs: [addresses[index]],
        ipFamilies: ['IPv4'],
        ipFamilyPolicy: 'SingleStack',
      });
      expect(Number(addresses[index]?.split('.')[3])).toBeGreaterThan(16);
    }
  });

  test('all cluster IPs of the range are allocated except for the reserved ones', async () => {
    const registry = await smallRegistry();
    const addresses = new Set<string>();
    for (let n = 0; n < 12; n++) {
      addresses.add(specOf(await registry.create(SERVICES, 'default', service(`s${n}`))).clusterIP ?? '');
    }
    expect(addresses.size).toBe(12);
    expect(addresses).not.toContain('10.9.0.10');
    expect(await failure(registry.create(SERVICES, 'default', service('more')))).toEqual({
      code: 500,
      reason: 'InternalError',
      message: 'Internal error occurred: failed to allocate a serviceIP: range is full',
    });
    const requested = await registry.create(SERVICES, 'default', service('dns', { clusterIP: '10.9.0.10' }));
    expect(specOf(requested).clusterIPs).toEqual(['10.9.0.10']);
    await registry.delete(SERVICES, 'default', 's3');
    expect(specOf(await registry.create(SERVICES, 'default', service('again'))).clusterIP).toBeDefined();
  });

  test.each([
    [
      'in use',
      '10.96.0.1',
      'Service "b" is invalid: spec.clusterIPs: Invalid value: ["10.96.0.1"]: failed to allocate IP 10.96.0.1: provided IP is already allocated',
    ],
    [
      'outside the range',
      '10.97.0.1',
      'Service "b" is invalid: spec.clusterIPs: Invalid value: ["10.97.0.1"]: failed to allocate IP 10.97.0.1: the provided network does not match the current range',
    ],
    [
      'the broadcast address',
      '10.96.0.255',
      'Service "b" is invalid: spec.clusterIPs: Invalid value: ["10.96.0.255"]: failed to allocate IP 10.96.0.255: the provided network does not match the current range',
    ],
  ])('a requested cluster IP is refused if it is %s', async (_, clusterIP, message) => {
    const { registry } = await startRegistry();
    expect(await failure(registry.create(SERVICES, 'default', service('b', { clusterIP })))).toEqual({
      code: 422,
      reason: 'Invalid',
      message,
    });
  });

  test('only one of two concurrent requests for the same cluster IP succeeds', async () => {
    const { registry } = await startRegistry();
    const requests = ['a', 'b'].map((name) =>
      registry.create(SERVICES, 'default', service(name, { clusterIP: '10.96.0.9' })),
    );
    const results = await Promise.allSettled(requests);
    expect(results.map((result) => result.status).sort()).toEqual(['fulfilled', 'rejected']);
  });

  test('headless and ExternalName Services get no cluster IP', async () => {
    const { registry } = await startRegistry();
    const headless = await registry.create(
      SERVICES,
      'default',
      service('h', { clusterIP: 'None', selector: { a: 'b' } }),
    );
    expect(specOf(headless)).toMatchObject({ clusterIP: 'None', clusterIPs: ['None'], ipFamilies: ['IPv4'] });
    const open = await registry.create(SERVICES, 'default', service('o', { clusterIP: 'None' }));
    expect(specOf(open)).toMatchObject({ ipFamilyPolicy: 'RequireDualStack', ipFamilies: ['IPv4', 'IPv6'] });
    const external = await registry.create(
      SERVICES,
      'default',
      service('e', { type: 'ExternalName', externalName: 'a.b' }),
    );
    expect(specOf(external).clusterIP).toBeUndefined();
  });

  test.each<[Partial<ServiceSpec>, string]>([
    [{ ipFamilies: ['IPv6'] }, 'spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster'],
    [
      { ipFamilyPolicy: 'RequireDualStack' },
      'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services',
    ],
  ])('a Service with %o is refused', async (spec, text) => {
    const { registry } = await startRegistry();
    const { message } = await failure(registry.create(SERVICES, 'default', service('a', spec)));
    expect(message).toBe(`Service "a" is invalid: ${text}`);
  });

  test('an update without a cluster IP keeps the cluster IP, and an update to ExternalName releases it', async () => {
    const { registry } = await startRegistry();
    const { clusterIP } = specOf(await registry.create(SERVICES, 'default', service('a')));
    const place = { namespace: 'default' };
    const updated = await registry.update(SERVICES, service('a', { ports: [{ port: 81 }] }, place));
    expect(specOf(updated)).toMatchObject({ clusterIP, clusterIPs: [clusterIP] });
    await registry.update(SERVICES, service('a', { type: 'ExternalName', externalName: 'a.b' }, place));
    const other = await registry.create(SERVICES, 'default', service('b', { clusterIP }));
    expect(specOf(other).clusterIP).toBe(clusterIP);
  });

  test('a dry run and a failed write do not allocate the requested cluster IP', async () => {
    const { registry } = await startRegistry();
    const requested = service('a', { clusterIP: '10.96.0.9' });
    await registry.create(SERVICES, 'default', requested, { dryRun: true });
    const taken = service('kubernetes', { clusterIP: '10.96.0.9' });
    expect(await failure(registry.create(SERVICES, 'default', taken))).toMatchObject({ reason: 'AlreadyExists' });
    expect(specOf(await registry.create(SERVICES, 'default', requested)).clusterIP).toBe('10.96.0.9');
  });

  test('cluster IPs are still allocated after a restart', async () => {
    const store = createMemoryStore();
    const { registry } = await startRegistry({ store });
    await registry.create(SERVICES, 'default', service('a', { clusterIP: '10.96.0.9' }));
    const again = await startRegistry({ store });
    const second = again.registry.create(SERVICES, 'default', service('b', { clusterIP: '10.96.0.9' }));
    expect((await failure(second)).message).toContain('provided IP is already allocated');
  });
});

describe('node ports', () => {
  const nodePort = (name: string, port: number, rest: object = {}) =>
    service(name, { type: 'NodePort', ports: [{ port, ...rest }] });

  test('a Service gets a node port and keeps it on update, and a requested node port is refused if it is in use or out of range', async () => {
    const { registry } = await startRegistry();
    const given = specOf(await registry.create(SERVICES, 'default', nodePort('a', 80))).ports?.[0]?.nodePort as number;
    expect(given).toBeGreaterThanOrEqual(30_000);
    expect(given).toBeLessThanOrEqual(32_767);
    const kept = await registry.update(SERVICES, service('a', { type: 'NodePort' }, { namespace: 'default' }));
    expect(specOf(kept).ports?.[0]?.nodePort).toBe(given);
    expect((await failure(registry.create(SERVICES, 'default', nodePort('b', 80, { nodePort: given })))).message).toBe(
      `Service "b" is invalid: spec.ports[0].nodePort: Invalid value: ${given}: provided port is already allocated`,
    );
    expect((await failure(registry.create(SERVICES, 'default', nodePort('b', 80, { nodePort: 80 })))).message).toBe(
      'Service "b" is invalid: spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-32767',
    );
  });

  test('TCP and UDP ports of one Service may share a node port', async () => {
    const { registry } = await startRegistry();
    const ports = ['TCP', 'UDP'].map((protocol) => ({
      name: protocol.toLowerCase(),
      port: 53,
      protocol,
      nodePort: 30_053,
    }));
    const created = await registry.create(SERVICES, 'default', service('dns', { type: 'NodePort', ports }));
    expect(specOf(created).ports?.map((port) => port.nodePort)).toEqual([30_053, 30_053]);
  });
});

test('a Service gets a node port that is a host port of a Pod only if the Pod has ended', async () => {
  const store = createMemoryStore();
  const cache = await loadWatchCache({ store, log: strictLog });
  const services = { cache, store, timers: createVirtualTimers(), randomBytes: () => new Uint8Array(8) };
  const put = (key: string, value: object) =>
    store.txn({ compare: [], puts: [{ key, value: Buffer.from(JSON.stringify(value)) }] });
  const cidrs = object('ServiceCIDR', 'kubernetes', { spec: { cidrs: [SERVICE_CIDR] } });
  await put(objectKey(resourcePrefix('networking.k8s.io', 'servicecidrs'), undefined, 'kubernetes'), cidrs);
  const pod = (phase: string) => {
    const containers = [{ name: 'c', ports: [{ containerPort: 80, hostPort: 30_086 }] }];
    return object('Pod', 'p', { spec: { containers }, status: { phase } }, { namespace: 'default' });
  };
  const key = objectKey(resourcePrefix('', 'pods'), 'default', 'p');
  const { admit } = createServiceAllocator({ ...services, serviceCidr: SERVICE_CIDR, authorizer: privilegedOr() });
  const given = () => {
    const created = service('a', { type: 'NodePort' }, { namespace: 'default' });
    admit(created, undefined)();
    return specOf(created).ports?.[0]?.nodePort;
  };
  expect(given()).toBe(30_086);
  await put(key, pod('Running'));
  expect(given()).toBe(30_087);
  await put(key, pod('Succeeded'));
  expect(given()).toBe(30_086);
});

test('a write of a Service does not list other Services, because their addresses and ports are tracked', async () => {
  const store = createMemoryStore();
  const cache = await loadWatchCache({ store, log: strictLog });
  const lists = vi.spyOn(cache, 'list');
  const services = { cache, store, timers: createVirtualTimers(), randomBytes: () => new Uint8Array(8) };
  const { admit } = createServiceAllocator({ ...services, serviceCidr: SERVICE_CIDR, authorizer: privilegedOr() });
  const place = { namespace: 'default' };
  const key = (name: string) => objectKey(resourcePrefix('', 'services'), 'default', name);
  const using = (name: string, nodePort: number) =>
    service(
      name,
      { type: 'NodePort', clusterIP: '10.96.0.9', clusterIPs: ['10.96.0.9'], ports: [{ port: 80, nodePort }] },
      place,
    );
  const put = async (name: string, nodePort: number) => {
    const object = using(name, nodePort);
    const release = admit(object, cache.get(key(name)));
    await store.txn({ compare: [], puts: [{ key: key(name), value: Buffer.from(JSON.stringify(object)) }] });
    release();
  };
  const cidrs = object('ServiceCIDR', 'kubernetes', { spec: { cidrs: [SERVICE_CIDR] } });
  const at = objectKey(resourcePrefix('networking.k8s.io', 'servicecidrs'), undefined, 'kubernetes');
  await store.txn({ compare: [], puts: [{ key: at, value: Buffer.from(JSON.stringify(cidrs)) }] });
  await put('a', 30_001);
  await put('a', 30_001);
  expect(() => admit(using('b', 30_002), undefined)).toThrow('provided IP is already allocated');
  const other = (nodePort: number) => service('b', { type: 'NodePort', ports: [{ port: 80, nodePort }] }, place);
  expect(() => admit(other(30_001), undefined)).toThrow('provided port is already allocated');
  await put('a', 30_003);
  admit(other(30_001), undefined)();
  expect(() => admit(other(30_003), undefined)).toThrow('provided port is already allocated');
  await store.txn({ compare: [], deletes: [key('a')] });
  await put('b', 30_003);
  expect(lists.mock.calls.filter(([prefix]) => prefix.includes('/services/'))).toHaveLength(1);
});

describe('bootstrap', () => {
  test('bootstrap creates the namespaces and the Service of the API server only once', async () => {
    const { registry } = await startRegistry();
    const before = registry.revision();
    await bootstrap(registry, { serviceCidr: SERVICE_CIDR, apiServerPort: 6443 });
    expect(registry.revision()).toBe(before);
    const namespaces = await registry.list(NAMESPACES, {});
    expect(namespaces.items.map(({ metadata }) => metadata.name)).toEqual([
      'default',
      'kube-node-lease',
      'kube-public',
      'kube-system',
    ]);
    expect(await registry.get(SERVICES, 'default', 'kubernetes')).toMatchObject({
      metadata: { labels: { component: 'apiserver', provider: 'kubernetes' } },
      spec: { clusterIP: '10.96.0.1', ports: [{ name: 'https', port: 443, targetPort: 6443 }] },
    });
  });

  test('bootstrap updates the Service of the API server to another port', async () => {
    const { registry } = await startRegistry();
    await bootstrap(registry, { serviceCidr: SERVICE_CIDR, apiServerPort: 8443 });
    expect(specOf(await registry.get(SERVICES, 'default', 'kubernetes')).ports?.[0]?.targetPort).toBe(8443);
  });

  test('bootstrap creates the ServiceCIDR of the configured ranges, and adds a second range', async () => {
    const { registry } = await startRegistry();
    const cidrs = async () => ((await registry.get(SERVICE_CIDRS, undefined, 'kubernetes')) as ServiceCIDR).spec?.cidrs;
    expect(await cidrs()).toEqual([SERVICE_CIDR]);
    await bootstrap(registry, { serviceCidr: `${SERVICE_CIDR},fd00::/112`, apiServerPort: 6443 });
    expect(await cidrs()).toEqual([SERVICE_CIDR, 'fd00::/112']);
  });
});

test('an update of a Service with a node port succeeds while another update of the Service waits for a plugin', async () => {
  const waits = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  const waiting: AdmissionPlugin = {
    name: 'Waiting',
    handles: ({ kind, operation }) => kind.plural === 'services' && operation === 'UPDATE',
    validate({ object }) {
      if (object?.metadata.labels?.['first'] === undefined) return undefined;
      reached.resolve();
      return waits.promise;
    },
  };
  const { registry } = await startRegistry({ admission: [...admissionPlugins, () => waiting] });
  await registry.create(SERVICES, 'default', service('a', { type: 'NodePort' }));
  const label = (key: string) =>
    registry.patch(SERVICES, 'default', 'a', 'application/merge-patch+json', { metadata: { labels: { [key]: 'x' } } });
  const first = label('first');
  await reached.promise;
  expect((await label('second')).metadata.labels).toEqual({ second: 'x' });
  waits.resolve();
  expect((await first).metadata.labels).toEqual({ first: 'x', second: 'x' });
});

test.each(['', '10.0.0.0', '10.0.0.0/29', '10.0.0.0/7', 'fd00::/63', 'fd00::/125', '10.0.0.0/x', '10.0.0.0/16,'])(
  'parseServiceCidrs refuses %j',
  (cidr) => {
    expect(() => parseServiceCidrs(cidr)).toThrow('is neither an IPv4 network from /8 to /28');
  },
);

test.each(['10.0.0.0/16,10.1.0.0/16', '10.0.0.0/16,fd00::/64,fd01::/64'])('parseServiceCidrs refuses %j', (cidrs) => {
  expect(() => parseServiceCidrs(cidrs)).toThrow('are more than one for each IP family');
});

async function smallRegistry() {
  const serviceCidr = '10.9.0.0/28';
  const backend = await createRegistry({
    store: createMemoryStore(),
    catalog: createCatalog(kinds),
    timers: createVirtualTimers(),
    log: strictLog,
    serviceCidr,
  });
  const registry = apiFor(backend, TEST_USER);
  await bootstrap(registry, { serviceCidr, apiServerPort: 6443 });
  return registry;
}
