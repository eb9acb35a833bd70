import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../machinery/meta.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createMemoryStore } from '../../store/memory/memory-store.ts';
import type { Store } from '../../store/store.ts';
import { EventWindow, WindowBudget } from './event-window.ts';
import { parseKey } from './keys.ts';
import { storedText } from './stored-object.ts';
import { loadWatchCache, type WatchCache } from './watch-cache.ts';

const PREFIX = '/registry/core/pods/';
const put = (store: Store, path: string, value = 0) =>
  store.txn({
    compare: [],
    puts: [
      {
        key: `${PREFIX}${path}`,
        value: Buffer.from(storedText({ apiVersion: 'v1', kind: 'Pod', metadata: { name: path }, value } as never)),
      },
    ],
  });
const remove = (store: Store, path: string) => store.txn({ compare: [], deletes: [`${PREFIX}${path}`] });

async function started(windowEvents?: number): Promise<{ store: Store; cache: WatchCache }> {
  const store = createMemoryStore();
  return { store, cache: await loadWatchCache({ store, log: silentLog, windowEvents }) };
}

const shown = (cache: WatchCache, namespace?: string): string[] =>
  cache.list(PREFIX, namespace).map((object) => object.metadata.name);

describe('cached objects', () => {
  test('the watch cache lists objects in the key order of the store', async () => {
    const { store, cache } = await started();
    // '-' sorts before the '/' that ends a namespace.
    for (const path of ['b/2', 'a/1', 'a-b/9', 'b/1', 'a/0', 'b/10']) await put(store, path);
    const { items } = await store.range({ prefix: PREFIX });
    expect(shown(cache)).toEqual(items.map(({ key }) => key.slice(PREFIX.length)));
    expect(shown(cache, 'b')).toEqual(['b/1', 'b/10', 'b/2']);
    await remove(store, 'b/10');
    await put(store, 'b/1', 1);
    expect(shown(cache, 'b')).toEqual(['b/1', 'b/2']);
    for (const path of ['b/1', 'b/2']) await remove(store, path);
    expect(shown(cache, 'b')).toEqual([]);
    expect(shown(cache)).toEqual(['a-b/9', 'a/0', 'a/1']);
  });

  test('cached objects are deeply frozen and have their revision as resourceVersion', async () => {
    const { store, cache } = await started();
    const { revision } = await put(store, 'a/1');
    const object = cache.get(`${PREFIX}a/1`);
    expect(object?.metadata.resourceVersion).toBe(String(revision));
    expect(Object.isFrozen(object?.metadata)).toBe(true);
    expect(cache.revision()).toBe(revision);
  });

  test('the watch cache loads the objects that exist in the store', async () => {
    const { store } = await started();
    await put(store, 'a/1');
    const cache = await loadWatchCache({ store, log: silentLog });
    expect(shown(cache)).toEqual(['a/1']);
    expect(cache.revision()).toBe(store.revision());
  });
});

describe('subscribers', () => {
  test('a subscriber gets the events of its namespace from the window, and then new events', async () => {
    const { store, cache } = await started();
    await put(store, 'a/1');
    await put(store, 'b/1');
    const seen: string[] = [];
    const stop = cache.subscribe(PREFIX, 'b', 0, ({ type, object }) => seen.push(`${type} ${object.metadata.name}`));
    await put(store, 'b/1', 1);
    await put(store, 'a/1', 1);
    await remove(store, 'b/1');
    stop();
    await put(store, 'b/1');
    expect(seen).toEqual(['ADDED b/1', 'MODIFIED b/1', 'DELETED b/1']);
  });

  test('subscribing at a revision before the window throws an error with the oldest available revision', async () => {
    const { store, cache } = await started(2);
    for (const n of [1, 2, 3, 4]) await put(store, 'a/1', n);
    expect(() => cache.subscribe(PREFIX, undefined, 1, () => {})).toThrow('too old resource version: 1 (2)');
    const seen: number[] = [];
    cache.subscribe(PREFIX, undefined, 2, (event) => seen.push(event.revision));
    await put(store, 'a/1', 5);
    expect(seen).toEqual([3, 4, 5]);
  });

  test('a subscriber that missed objects of more than 8 MiB in the store gets TooOldError', async () => {
    const { store, cache } = await started();
    const large = { annotations: { large: 'x'.repeat(2 ** 20) } };
    const value = Buffer.from(
      storedText({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a', ...large } } as KubeObject),
    );
    for (let i = 0; i < 20; i++) await store.txn({ compare: [], puts: [{ key: `${PREFIX}a/1`, value }] });
    expect(() => cache.subscribe(PREFIX, undefined, 12, () => {})).toThrow('too old resource version: 12 (13)');
    let count = 0;
    cache.subscribe(PREFIX, undefined, 13, () => {
      count += 1;
    });
    expect(count).toBe(7);
  });

  test('an event window does not keep the objects of forgotten events in memory', async () => {
    setFlagsFromString('--expose-gc');
    const collectGarbage = runInNewContext('gc') as () => void;
    const window = new EventWindow(1000, 0, new WindowBudget());
    const objects = Array.from({ length: 20 }, (_, index) => {
      const object = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' } };
      window.push({ type: 'MODIFIED', namespace: 'a', revision: index + 1, object, previous: undefined }, 2 ** 21);
      return new WeakRef(object);
    });
    // A WeakRef keeps its object alive until the end of the turn of the event loop that created it.
    await new Promise(setImmediate);
    collectGarbage();
    expect(window.after(12)?.map(({ revision }) => revision)).toEqual([13, 14, 15, 16, 17, 18, 19, 20]);
    expect(objects.map((each) => each.deref() !== undefined).indexOf(true)).toBe(12);
  });

  test('event windows share a budget across resources, and the largest window forgets its oldest events first', () => {
    const budget = new WindowBudget(1000);
    const [small, large] = [new EventWindow(100, 0, budget), new EventWindow(100, 0, budget)];
    const object = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' } };
    const push = (window: EventWindow, revision: number, bytes: number): void =>
      window.push({ type: 'MODIFIED', namespace: 'a', revision, object, previous: undefined }, bytes);
    push(small, 1, 100);
    for (let revision = 2; revision <= 5; revision++) push(large, revision, 300);
    push(small, 6, 100);
    expect(budget.bytes).toBeLessThanOrEqual(1000);
    expect([small.oldestRevision, large.oldestRevision]).toEqual([0, 3]);
    expect(large.after(3)?.map(({ revision }) => revision)).toEqual([4, 5]);
    expect(large.after(2)).toBeUndefined();
  });

  test('subscribers get the events of a transaction in order and see all its writes, even if a listener subscribes', async () => {
    const { store, cache } = await started();
    const first: string[] = [];
    const second: string[] = [];
    cache.subscribe(PREFIX, undefined, 0, (event) => {
      first.push(event.object.metadata.name);
      expect(shown(cache)).toEqual(['a/1', 'a/2']);
      if (first.length === 1) {
        cache.subscribe(PREFIX, undefined, 0, (inner) => second.push(inner.object.metadata.name));
      }
    });
    const puts = ['a/1', 'a/2'].map((path) => ({
      key: `${PREFIX}${path}`,
      value: Buffer.from(storedText({ apiVersion: 'v1', kind: 'Pod', metadata: { name: path } })),
    }));
    await store.txn({ compare: [], puts });
    expect(first).toEqual(['a/1', 'a/2']);
    expect(second).toEqual(['a/1', 'a/2']);
  });

  test('a subscriber gets its events even if the listener of another subscriber throws', async () => {
    const { store, cache } = await started();
    const seen: number[] = [];
    cache.subscribe(PREFIX, undefined, 0, () => {
      throw new Error('broken');
    });
    cache.subscribe(PREFIX, undefined, 0, (event) => seen.push(event.revision));
    await put(store, 'a/1');
    expect(seen).toEqual([1]);
  });
});

test.each([
  ['/registry/core/pods/default/a', { prefix: '/registry/core/pods/', namespace: 'default', name: 'a' }],
  ['/registry/core/nodes/n', { prefix: '/registry/core/nodes/', namespace: '', name: 'n' }],
  ['/registry/core', undefined],
  ['/other/core/pods/a', undefined],
])('parseKey(%s) returns %j', (key, parts) => {
  expect(parseKey(key)).toEqual(parts);
});
