import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Pod, ResourceQuota } from '../../api/generated/types.ts';
import { kinds } from '../../api/kinds.ts';
import { CONFIG_MAPS, PODS, RESOURCE_QUOTAS, SERVICES } from '../../api/resources.ts';
import { type RegistryBackend, registryBackend, withInformers } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { isApiError } from '../../machinery/status.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers, type VirtualTimers } from '../../platform/virtual-timers.ts';
import type { ControllerOptions } from '../controller.ts';
import { type KilledEngines, killedEngines, turns } from '../replicas/killed-engines-fixture.ts';
import { countedResources } from './counted-resources.ts';
import { startResourceQuotas } from './resource-quota.ts';

const resources = () => countedResources(kinds);
const start = (options: ControllerOptions) => startResourceQuotas({ ...options, resources });

const quota = (hard: Record<string, string>, name = 'q', spec: object = {}): ResourceQuota => ({
  apiVersion: 'v1',
  kind: 'ResourceQuota',
  metadata: { name, namespace: 'a' },
  spec: { hard, ...spec },
});
const pod = (name: string, cpu: string, node?: string): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'a' },
  spec: {
    containers: [{ name: 'app', image: 'x', resources: { requests: { cpu } } }],
    ...(node === undefined ? {} : { nodeName: node }),
  },
});
const configMap = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'a' } });

describe('on a registry', () => {
  let backend: RegistryBackend;
  let timers: VirtualTimers;
  let stop: AbortController;
  beforeEach(async () => {
    timers = createVirtualTimers();
    backend = await registryBackend({ timers });
    stop = new AbortController();
    await start(withInformers({ client: clientOf(backend), timers, log: silentLog, signal: stop.signal }));
  });
  afterEach(() => stop.abort());

  const settled = async (): Promise<void> => {
    timers.advance(0);
    await turns(100);
  };
  const used = (name = 'q') =>
    (backend.objects(RESOURCE_QUOTAS) as ResourceQuota[]).find(({ metadata }) => metadata.name === name)?.status?.used;
  const limit = async (hard: Record<string, string>): Promise<void> => {
    await backend.set(RESOURCE_QUOTAS, quota(hard));
    await settled();
  };

  test('existing objects are counted when a quota is created, and new ones are charged with their write', async () => {
    await backend.create(PODS, 'a', pod('before', '500m'));
    await limit({ pods: '3', 'requests.cpu': '2', 'count/configmaps': '1' });
    expect(used()).toEqual({ pods: '1', 'requests.cpu': '500m', 'count/configmaps': '0' });
    await backend.create(PODS, 'a', pod('x', '1'));
    await backend.create(CONFIG_MAPS, 'a', configMap('c'));
    expect(used()).toEqual({ pods: '2', 'requests.cpu': '1500m', 'count/configmaps': '1' });
    await expect(backend.create(CONFIG_MAPS, 'a', configMap('d'))).rejects.toMatchObject({
      code: 403,
      message:
        'configmaps "d" is forbidden: exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=1, limited: count/configmaps=1',
    });
  });

  test('the status follows deletes, ends of Pods, and changes of the limits', async () => {
    await limit({ pods: '3', 'requests.cpu': '2' });
    for (const name of ['x', 'y', 'z']) await backend.create(PODS, 'a', pod(name, '500m'));
    expect(used()).toEqual({ pods: '3', 'requests.cpu': '1500m' });
    await backend.remove(PODS, 'a', 'x');
    await backend.setStatus(PODS, 'a', 'y', { phase: 'Succeeded' });
    await settled();
    expect(used()).toEqual({ pods: '1', 'requests.cpu': '500m' });
    await limit({ pods: '3' });
    expect(used()).toEqual({ pods: '1' });
  });

  test('two creates at the same time never pass a quota together', async () => {
    await limit({ pods: '3' });
    const names = Array.from({ length: 10 }, (_, index) => `p${index}`);
    const results = await Promise.allSettled(names.map((name) => backend.create(PODS, 'a', pod(name, '1m'))));
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(3);
    expect(used()).toEqual({ pods: '3' });
  });

  const countTransactions = (): (() => number) => {
    const { txn } = backend.store;
    let transactions = 0;
    backend.store.txn = (...args) => {
      transactions += 1;
      return txn.apply(backend.store, args);
    };
    return () => transactions;
  };

  test('many creates at the same time take turns: each is tried at most twice', async () => {
    await limit({ pods: '1000' });
    const transactions = countTransactions();
    const names = Array.from({ length: 200 }, (_, index) => `p${index}`);
    await Promise.all(names.map((name) => backend.create(PODS, 'a', pod(name, '1m'))));
    expect(used()).toEqual({ pods: '200' });
    expect(transactions()).toBeLessThanOrEqual(400);
  });

  test('many charged updates at the same time take turns: each is tried at most twice', async () => {
    await limit({ 'services.nodeports': '1000' });
    const names = Array.from({ length: 50 }, (_, index) => `s${index}`);
    const service = (name: string) => ({ ...configMap(name), kind: 'Service', spec: { ports: [{ port: 80 }] } });
    for (const name of names) await backend.create(SERVICES, 'a', service(name));
    const transactions = countTransactions();
    const type = 'application/merge-patch+json';
    await Promise.all(names.map((name) => backend.patch(SERVICES, 'a', name, type, { spec: { type: 'NodePort' } })));
    expect(used()).toEqual({ 'services.nodeports': '50' });
    expect(transactions()).toBeLessThanOrEqual(100);
  });

  test('a Pod without a value that the quota limits is rejected', async () => {
    await limit({ 'limits.memory': '1Gi' });
    await expect(backend.create(PODS, 'a', pod('x', '1m'))).rejects.toMatchObject({
      message: 'pods "x" is forbidden: failed quota: q: must specify limits.memory for: app',
    });
  });

  test('a dry run is checked and not charged', async () => {
    await limit({ pods: '1' });
    await backend.create(PODS, 'a', pod('x', '1m'), { dryRun: true });
    expect(used()).toEqual({ pods: '0' });
    await backend.create(PODS, 'a', pod('y', '1m'));
    await expect(backend.create(PODS, 'a', pod('z', '1m'), { dryRun: true })).rejects.toMatchObject({ code: 403 });
  });

  test('an update of a Service is charged for its node ports, rejected beyond the quota, and given back', async () => {
    await limit({ services: '2', 'services.nodeports': '1' });
    const service = (name: string) => ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name, namespace: 'a' },
      spec: { ports: [{ port: 80 }] },
    });
    const become = (name: string, type: string) =>
      backend.patch(SERVICES, 'a', name, 'application/merge-patch+json', { spec: { type } });
    for (const name of ['x', 'y']) await backend.create(SERVICES, 'a', service(name));
    await become('x', 'NodePort');
    expect(used()).toEqual({ services: '2', 'services.nodeports': '1' });
    await expect(become('y', 'LoadBalancer')).rejects.toMatchObject({
      message:
        'services "y" is forbidden: exceeded quota: q, requested: services.nodeports=1, used: services.nodeports=1, limited: services.nodeports=1',
    });
    await become('x', 'ClusterIP');
    await settled();
    expect(used()).toEqual({ services: '2', 'services.nodeports': '0' });
    await become('y', 'LoadBalancer');
    expect(used()).toEqual({ services: '2', 'services.nodeports': '1' });
  });

  test('a terminating Pod is charged until twice its grace period has passed', async () => {
    await limit({ pods: '5' });
    await backend.create(PODS, 'a', pod('x', '1m', 'n'));
    await backend.delete(PODS, 'a', 'x', { gracePeriodSeconds: 10 });
    await settled();
    expect(used()).toEqual({ pods: '1' });
    timers.advance(21_000);
    await settled();
    expect(used()).toEqual({ pods: '0' });
  });

  test('a change that does not affect the usage causes no writes', async () => {
    await limit({ pods: '5' });
    await backend.create(PODS, 'a', pod('x', '1m'));
    await settled();
    const before = backend.calls.length;
    await backend.setStatus(PODS, 'a', 'x', { phase: 'Running' });
    await settled();
    expect(backend.calls.slice(before).filter((call) => call.startsWith('update resourcequotas'))).toEqual([]);
  });
});

type Step =
  | { do: 'create'; cpu: number }
  | { do: 'delete' | 'end'; pod: number }
  | { do: 'limit'; pods: number }
  | { do: 'kill'; afterWrites: number }
  | { do: 'run'; turns: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  { arbitrary: fc.record({ do: fc.constant('create'), cpu: fc.integer({ min: 1, max: 4 }) }), weight: 4 },
  fc.record({ do: fc.constantFrom('delete', 'end'), pod: fc.nat(10) }),
  fc.record({ do: fc.constant('limit'), pods: fc.integer({ min: 1, max: 5 }) }),
  fc.record({ do: fc.constant('kill'), afterWrites: fc.integer({ min: 1, max: 3 }) }),
  fc.record({ do: fc.constant('run'), turns: fc.nat(30) }),
);

const seed = Number(process.env['LIFEPOD_SEED']);
const CPUS = 8;

test('creates at the same time never exceed a quota, and its status becomes correct, while the engine is killed between any two writes', async () => {
  const lags = fc.record({ pods: fc.nat(15), resourcequotas: fc.nat(15) });
  const property = fc.asyncProperty(lags, fc.array(step, { minLength: 1, maxLength: 40 }), async (lag, steps) => {
    const backend = await registryBackend();
    const pods = () => backend.objects(PODS) as Pod[];
    const charged = () => pods().filter(({ status }) => status?.phase !== 'Failed');
    const cpus = () =>
      charged().reduce((sum, { spec }) => sum + Number(spec?.containers[0]?.resources?.requests?.['cpu']), 0);
    let most = 5;
    let created = 0;
    const engines: KilledEngines = killedEngines(backend, { start, lags: lag, written: () => {} });
    const setLimit = (count: number) =>
      backend.set(RESOURCE_QUOTAS, quota({ pods: String(count), 'requests.cpu': String(CPUS) }));
    const creates: Promise<unknown>[] = [];
    const check = (): void => {
      expect(charged().length).toBeLessThanOrEqual(most);
      expect(cpus()).toBeLessThanOrEqual(CPUS);
    };
    const take = async (each: Step): Promise<void> => {
      const target =
        each.do === 'delete' || each.do === 'end' ? pods()[each.pod % Math.max(1, pods().length)] : undefined;
      if (each.do === 'create') {
        // Do not await the create, so that creates compete with each other.
        const isRejected = (error: unknown): void => {
          if (!isApiError(error, 'Forbidden')) throw error;
        };
        creates.push(backend.create(PODS, 'a', pod(`p${++created}`, String(each.cpu))).catch(isRejected));
      } else if (each.do === 'limit') {
        most = Math.max(most, each.pods);
        await setLimit(each.pods);
      } else if (each.do === 'kill') engines.killAfter(each.afterWrites);
      else if (each.do === 'run') await turns(each.turns);
      else if (target !== undefined && each.do === 'delete') await backend.remove(PODS, 'a', target.metadata.name);
      else if (target !== undefined) await backend.setStatus(PODS, 'a', target.metadata.name, { phase: 'Failed' });
      check();
    };
    try {
      await setLimit(5);
      await engines.settled();
      for (const each of steps) await take(each);
      await Promise.all(creates);
      await engines.settled();
      check();
      const [{ status } = {} as ResourceQuota] = backend.objects(RESOURCE_QUOTAS) as ResourceQuota[];
      expect(status?.used).toEqual({ pods: String(charged().length), 'requests.cpu': String(cpus()) });
    } finally {
      engines.end();
    }
  });
  await fc.assert(property, { numRuns: 60, ...(Number.isNaN(seed) ? {} : { seed }) });
}, 60_000);
