import { afterEach, expect, test, vi } from 'vitest';
import { createCatalog } from '../../../api/catalog.ts';
import { kinds } from '../../../api/kinds.ts';
import type { KubeObject } from '../../../machinery/meta.ts';
import type { WatchEvent } from '../../../ports/backend.ts';
import { delayWatch } from '../../../store/delayed-watch-fixture.ts';
import { createMemoryStore } from '../../../store/memory/memory-store.ts';
import { objectKey, resourcePrefix } from '../../cache/keys.ts';
import { loadWatchCache } from '../../cache/watch-cache.ts';
import { turns } from '../../server-fixture.ts';
import { insert } from '../commit.ts';
import { createObjectRoom } from '../object-memory-limit.ts';
import { indexResources } from '../resources.ts';
import {
  CONFIG_MAPS,
  configMap,
  failure,
  NAMESPACES,
  object,
  SERVICE_ACCOUNTS,
  SERVICES,
  type Started,
  startRegistry,
  strictLog,
} from '../testing.ts';
import { keyOf } from './list.ts';

afterEach(() => void vi.restoreAllMocks());

interface Lagging extends Started {
  catchUp(): void;
  /** Fails if `call` settles before catchUp(). */
  afterCatchUp<T>(call: Promise<T>): Promise<T>;
}

/** The watch cache gets no events until catchUp() is called. */
async function lagging(): Promise<Lagging> {
  let held: (() => void)[] | undefined;
  const store = delayWatch(createMemoryStore(), (deliver) => {
    if (held === undefined) queueMicrotask(deliver);
    else held.push(deliver);
  });
  const started = await startRegistry({ store });
  held = [];
  const catchUp = (): void => {
    const deliveries = held ?? [];
    held = undefined;
    for (const deliver of deliveries) deliver();
  };
  return {
    ...started,
    catchUp,
    async afterCatchUp(call) {
      let isSettled = false;
      const settle = (): void => {
        isSettled = true;
      };
      call.then(settle, settle);
      await turns(5);
      expect(isSettled).toBe(false);
      catchUp();
      return call;
    },
  };
}

const names = (items: KubeObject[]): string[] => items.map(({ metadata }) => metadata.name);
const inDefault = { namespace: 'default' };
const IP = '10.96.0.9';
const service = (name: string, clusterIP: string): KubeObject =>
  object('Service', name, { spec: { ports: [{ port: 80 }], clusterIP } });

test('a write resolves before the watch cache contains it', async () => {
  const { registry } = await lagging();
  const created = await registry.create(CONFIG_MAPS, 'default', configMap('a'));
  expect(created.metadata.resourceVersion).toBe(String(registry.revision()));
  expect((await registry.list(CONFIG_MAPS, { resourceVersion: '0' })).items).toEqual([]);
});

test('a get sees each write that has resolved', async () => {
  const { registry, afterCatchUp } = await lagging();
  const created = await registry.create(CONFIG_MAPS, 'default', configMap('a'));
  expect(await afterCatchUp(registry.get(CONFIG_MAPS, 'default', 'a'))).toEqual(created);
});

test('a get reads the store if the watch cache lags for longer than 3 s', async () => {
  const { registry, timers } = await lagging();
  const created = await registry.create(CONFIG_MAPS, 'default', configMap('a'));
  const [found, missing] = [
    registry.get(CONFIG_MAPS, 'default', 'a'),
    failure(registry.get(CONFIG_MAPS, 'default', 'b')),
  ];
  await turns(1);
  timers.advance(3000);
  expect(await found).toEqual(created);
  expect(await missing).toMatchObject({ code: 404 });
});

test('a list without a resourceVersion sees each write that has resolved', async () => {
  const { registry, afterCatchUp } = await lagging();
  await registry.create(CONFIG_MAPS, 'default', configMap('a'));
  const { items, metadata } = await afterCatchUp(registry.list(CONFIG_MAPS, {}));
  expect(names(items)).toEqual(['a']);
  expect(metadata.resourceVersion).toBe(String(registry.revision()));
});

test('a list at the resourceVersion of an own write waits for that revision', async () => {
  const { registry, afterCatchUp } = await lagging();
  const { metadata } = await registry.create(CONFIG_MAPS, 'default', configMap('a'));
  const { resourceVersion } = metadata;
  expect(names((await afterCatchUp(registry.list(CONFIG_MAPS, { resourceVersion }))).items)).toEqual(['a']);
});

test('the initial state of a watch without a resourceVersion contains each write that has resolved', async () => {
  const { registry, settled, catchUp } = await lagging();
  await registry.delete(SERVICE_ACCOUNTS, 'default', 'default');
  const events: WatchEvent[] = [];
  const { signal } = new AbortController();
  void registry.watch(SERVICE_ACCOUNTS, {}, (event) => events.push(event), signal);
  await turns(5);
  expect(events).toEqual([]);
  catchUp();
  await registry.create(SERVICE_ACCOUNTS, 'default', object('ServiceAccount', 'new'));
  await settled();
  expect(events).toMatchObject([{ type: 'ADDED', object: { metadata: { name: 'new' } } }]);
});

test('a watch from the resourceVersion of an own write reports neither this write nor an older bookmark', async () => {
  const { registry, timers, settled, catchUp } = await lagging();
  const { metadata } = await registry.create(CONFIG_MAPS, 'default', configMap('a'));
  const { resourceVersion } = metadata;
  const events: WatchEvent[] = [];
  const options = { resourceVersion, allowWatchBookmarks: true };
  void registry.watch(CONFIG_MAPS, options, (event) => events.push(event), new AbortController().signal);
  timers.advance(60_000);
  expect(events).toMatchObject([{ type: 'BOOKMARK', object: { metadata: { resourceVersion } } }]);
  catchUp();
  await registry.create(CONFIG_MAPS, 'default', configMap('b'));
  await settled();
  expect(events.slice(1)).toMatchObject([{ type: 'ADDED', object: { metadata: { name: 'b' } } }]);
});

test('a list fails with 504 if the watch cache does not reach the newest revision within 3 s', async () => {
  const { registry, timers } = await lagging();
  await registry.create(CONFIG_MAPS, 'default', configMap('a'));
  const read = failure(registry.list(CONFIG_MAPS, {}));
  await turns(1);
  timers.advance(3000);
  const revision = registry.revision();
  const message = `Too large resource version: ${revision}, current: ${revision - 1}`;
  expect(await read).toEqual({ code: 504, reason: 'Timeout', message });
});

test('an update with the resourceVersion of an own write succeeds', async () => {
  const { registry, afterCatchUp } = await lagging();
  const { metadata } = await registry.create(CONFIG_MAPS, 'default', configMap('a'));
  const changed = configMap('a', { k: 'v' }, { ...inDefault, resourceVersion: metadata.resourceVersion });
  expect(await afterCatchUp(registry.update(CONFIG_MAPS, changed))).toMatchObject({ data: { k: 'v' } });
});

test('a patch that another writer overtakes is repeated on the newest object', async () => {
  const { registry, store, catchUp } = await lagging();
  catchUp();
  await registry.create(CONFIG_MAPS, 'default', configMap('a', { mine: '1' }));
  const key = objectKey(resourcePrefix('', 'configmaps'), 'default', 'a');
  const { txn } = store;
  store.txn = async (wanted) => {
    store.txn = txn;
    const other = { ...configMap('a', { other: '1' }, inDefault) };
    await txn({ compare: [], puts: [{ key, value: Buffer.from(JSON.stringify(other)) }] });
    return txn(wanted);
  };
  const patch = { data: { mine: '2' } };
  const patched = await registry.patch(CONFIG_MAPS, 'default', 'a', 'application/merge-patch+json', patch);
  expect(patched).toMatchObject({ data: { other: '1', mine: '2' } });
});

test('an object can be created in a namespace that the client has just created', async () => {
  const { registry, afterCatchUp } = await lagging();
  await registry.create(NAMESPACES, undefined, object('Namespace', 'x'));
  expect(await afterCatchUp(registry.create(CONFIG_MAPS, 'x', configMap('a')))).toMatchObject({
    metadata: { namespace: 'x' },
  });
});

test('a create fails with AlreadyExists if a write that has resolved uses the name', async () => {
  const { registry, afterCatchUp } = await lagging();
  await registry.create(CONFIG_MAPS, 'default', configMap('a'));
  const again = failure(registry.create(CONFIG_MAPS, 'default', configMap('a')));
  expect(await afterCatchUp(again)).toMatchObject({ reason: 'AlreadyExists' });
});

test('a delete removes the object of a write that has resolved', async () => {
  const { registry, afterCatchUp } = await lagging();
  await registry.create(CONFIG_MAPS, 'default', configMap('a'));
  await afterCatchUp(registry.delete(CONFIG_MAPS, 'default', 'a'));
  expect(await failure(registry.get(CONFIG_MAPS, 'default', 'a'))).toMatchObject({ reason: 'NotFound' });
});

test('the address of a Service is reserved until the watch cache contains the Service', async () => {
  const { registry, catchUp } = await lagging();
  // With this clock, every step seems to take 30 ms. The second request therefore passes its wait for the watch cache, and then waits for
  // the end of the first request before it checks the address.
  let now = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => (now += 30));
  const creates = ['a', 'b'].map((name) => registry.create(SERVICES, 'default', service(name, IP)));
  const [first, second] = await Promise.allSettled(creates);
  expect(first?.status).toBe('fulfilled');
  expect((second as PromiseRejectedResult).reason.message).toContain('provided IP is already allocated');
  catchUp();
  await registry.delete(SERVICES, 'default', 'a');
  expect(await registry.create(SERVICES, 'default', service('b', IP))).toMatchObject({ spec: { clusterIP: IP } });
});

test('the room of a new object is reserved until the watch cache counts the object', async () => {
  const { store, catchUp } = await lagging();
  const cache = await loadWatchCache({ store, log: strictLog });
  const room = createObjectRoom(() => cache.heldBytes(), 400_000);
  const context = { store, cache, room };
  const resource = indexResources(createCatalog(kinds)).find(CONFIG_MAPS);
  const put = (name: string) => {
    const large = configMap(name, { k: 'x'.repeat(100_000) }, inDefault);
    return insert(context, resource, keyOf(resource, 'default', name), large, [], { source: 'client' });
  };
  await put('a');
  expect(await failure(put('b'))).toMatchObject({ code: 507 });
  catchUp();
  const counted = cache.heldBytes();
  expect(counted).toBeGreaterThan(200_000);
  expect(await failure(put('b'))).toMatchObject({ code: 507 });
  expect(() => room.take(true, 375_000 - counted, false)).not.toThrow();
});

test('the response to a write is the object in the watch cache if it is already there, so that both are encoded once', async () => {
  const { registry } = await startRegistry();
  const created = await registry.create(CONFIG_MAPS, 'default', configMap('a'));
  expect(await registry.get(CONFIG_MAPS, 'default', 'a')).toBe(created);
});
