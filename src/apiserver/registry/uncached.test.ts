import { expect, test } from 'vitest';
import { createCatalog } from '../../api/catalog.ts';
import type { PodRecord } from '../../api/generated/types.ts';
import { kinds } from '../../api/kinds.ts';
import type { WatchEvent, WatchOptions } from '../../ports/backend.ts';
import { loadWatchCache } from '../cache/watch-cache.ts';
import { indexResources } from './resources.ts';
import { CONFIG_MAPS, failure, NAMESPACES, object, ref, type Started, startRegistry, strictLog } from './testing.ts';

const RECORDS = ref('podrecords', 'lifepod.io');

const record = (name: string, podName = 'web', steps = 1): PodRecord =>
  ({
    ...object('PodRecord', name, {
      podName,
      podUID: `uid-of-${podName}`,
      transitions: Array.from({ length: steps }, (_, i) => ({
        key: `step-${i}`,
        at: '2026-01-01T00:00:00.000000Z',
        type: 'Step',
      })),
    }),
    apiVersion: 'lifepod.io/v1',
  }) as PodRecord;

const names = async ({ registry }: Started, options: object = {}): Promise<string[]> =>
  (await registry.list(RECORDS, options)).items.map(({ metadata }) => metadata.name);

/**
 * Waits until `count` events have arrived. Resolves to a line for each event, such as `ADDED a 1` with the number of transitions, or only
 * `BOOKMARK`.
 */
async function watched(
  { registry }: Started,
  options: WatchOptions,
  count: number,
  meanwhile: () => Promise<void> = async () => {},
): Promise<string[]> {
  const lines: string[] = [];
  const enough = new AbortController();
  const sink = (event: WatchEvent): void => {
    if (event.type === 'ERROR') throw new Error(event.object.message);
    const { metadata, transitions } = event.object as PodRecord;
    lines.push(event.type === 'BOOKMARK' ? event.type : `${event.type} ${metadata.name} ${transitions.length}`);
    if (lines.length === count) enough.abort();
  };
  const ended = registry.watch(RECORDS, options, sink, enough.signal);
  await meanwhile();
  await ended;
  return lines;
}

test('uncached objects support create, get, update, patch and delete', async () => {
  const { registry } = await startRegistry();
  const created = (await registry.create(RECORDS, 'default', record('a'))) as PodRecord;
  expect(await registry.get(RECORDS, 'default', 'a')).toEqual(created);
  expect(await failure(registry.create(RECORDS, 'default', record('a')))).toMatchObject({ code: 409 });

  const longer = { ...record('a', 'web', 2), metadata: { name: 'a', namespace: 'default' } };
  const updated = (await registry.update(RECORDS, longer)) as PodRecord;
  expect(updated.transitions).toHaveLength(2);
  expect(updated.metadata.uid).toBe(created.metadata.uid);
  const stale = {
    ...longer,
    metadata: { ...longer.metadata, resourceVersion: created.metadata.resourceVersion ?? '' },
  };
  expect(await failure(registry.update(RECORDS, stale))).toMatchObject({ code: 409, reason: 'Conflict' });
  const patch = { metadata: { labels: { a: 'b' } } };
  await registry.patch(RECORDS, 'default', 'a', 'application/merge-patch+json', patch);
  expect((await registry.get(RECORDS, 'default', 'a')).metadata.labels).toEqual({ a: 'b' });

  await registry.delete(RECORDS, 'default', 'a');
  expect(await failure(registry.get(RECORDS, 'default', 'a'))).toMatchObject({ code: 404 });
  expect(await failure(registry.delete(RECORDS, 'default', 'a'))).toMatchObject({ code: 404 });
  expect(await failure(registry.update(RECORDS, longer))).toMatchObject({ code: 404 });
});

test('uncached objects are listed in order, by namespace, by selector and in pages', async () => {
  const started = await startRegistry();
  await started.registry.create(NAMESPACES, undefined, object('Namespace', 'other'));
  for (const name of ['c', 'a', 'b']) await started.registry.create(RECORDS, 'default', record(name, `pod-${name}`));
  await started.registry.create(RECORDS, 'other', record('d'));
  expect(await names(started)).toEqual(['a', 'b', 'c', 'd']);
  expect(await names(started, { namespace: 'default' })).toEqual(['a', 'b', 'c']);
  expect(await names(started, { namespace: 'default', fieldSelector: 'podName=pod-b' })).toEqual(['b']);
  expect(await names(started, { namespace: 'default', fieldSelector: 'metadata.name=c' })).toEqual(['c']);
  expect(await names(started, { namespace: 'default', fieldSelector: 'metadata.name=c,podName=web' })).toEqual([]);
  expect(await names(started, { namespace: 'default', fieldSelector: 'metadata.name=none' })).toEqual([]);
  const page = await started.registry.list(RECORDS, { limit: 3 });
  expect(page.metadata.remainingItemCount).toBe(1);
  // All pages show the state at the time of the first page.
  await started.registry.create(RECORDS, 'other', record('e'));
  expect(await names(started, { limit: 3, continue: page.metadata.continue })).toEqual(['d']);
});

test('a watch of uncached objects sends the current objects, then their changes', async () => {
  const started = await startRegistry();
  const { registry } = started;
  await registry.create(RECORDS, 'default', record('a'));
  await registry.create(RECORDS, 'default', record('b', 'other'));
  const { metadata } = await registry.list(RECORDS, {});
  const change = async (): Promise<void> => {
    await registry.update(RECORDS, { ...record('a', 'web', 3), metadata: { name: 'a', namespace: 'default' } });
    await registry.create(RECORDS, 'default', record('c'));
    await registry.delete(RECORDS, 'default', 'a');
  };
  const changes = ['MODIFIED a 3', 'ADDED c 1', 'DELETED a 3'];
  const ofWeb = { fieldSelector: 'podName=web' };
  const [all, web, initial] = await Promise.all([
    watched(started, {}, 5, change),
    watched(started, ofWeb, 4),
    watched(started, { ...ofWeb, sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' }, 4),
  ]);
  expect(all).toEqual(['ADDED a 1', 'ADDED b 1', ...changes]);
  expect(web).toEqual(['ADDED a 1', ...changes]);
  expect(initial).toEqual(['ADDED a 1', ...changes]);
  expect(await watched(started, { resourceVersion: metadata.resourceVersion }, 3)).toEqual(changes);
});

test('uncached objects are not in the cache, even after a restart', async () => {
  const { store, registry } = await startRegistry();
  for (let i = 0; i < 5; i++) await registry.create(RECORDS, 'default', record(`r${i}`));
  registry.close();
  const again = await startRegistry({ store });
  expect(await names(again)).toHaveLength(5);
  // The cache also loads objects whose keys sort after those of the uncached objects.
  const { uncached } = indexResources(createCatalog(kinds));
  await store.txn({
    compare: [],
    puts: [{ key: '/registry/z/things/a', value: Buffer.from(JSON.stringify(object('Thing', 'a'))) }],
  });
  const cache = await loadWatchCache({ store, log: strictLog, uncached });
  expect([...uncached]).toEqual(['/registry/lifepod.io/podrecords/']);
  expect(cache.list('/registry/lifepod.io/podrecords/')).toEqual([]);
  expect(cache.get('/registry/lifepod.io/podrecords/default/r1')).toBeUndefined();
  expect(cache.list('/registry/z/things/')).toHaveLength(1);
  expect(cache.get('/registry/core/namespaces/default')).toBeDefined();
});

test('PodRecords can be written while their namespace terminates and afterwards', async () => {
  const { registry } = await startRegistry();
  await registry.create(NAMESPACES, undefined, object('Namespace', 'going'));
  await registry.create(RECORDS, 'going', record('a'));
  await registry.delete(NAMESPACES, undefined, 'going');
  await registry.create(RECORDS, 'going', record('b'));
  expect(await failure(registry.create(CONFIG_MAPS, 'going', object('ConfigMap', 'c')))).toMatchObject({ code: 403 });
  const namespace = await registry.get(NAMESPACES, undefined, 'going');
  await registry.update(NAMESPACES, { ...namespace, spec: { finalizers: [] } } as never, { subresource: 'finalize' });
  expect(await failure(registry.get(NAMESPACES, undefined, 'going'))).toMatchObject({ code: 404 });
  await registry.create(RECORDS, 'going', record('c'));
  const left = (await registry.list(RECORDS, { namespace: 'going' })).items.map(({ metadata }) => metadata.name);
  expect(left).toEqual(['a', 'b', 'c']);
});

test('a page of large objects has fewer objects than the limit', async () => {
  const started = await startRegistry();
  const { registry } = started;
  for (const name of ['a', 'b', 'c']) {
    const large = record(name);
    const [step] = large.transitions;
    await registry.create(RECORDS, 'default', {
      ...large,
      transitions: [{ ...step, message: 'x'.repeat(5e6) }],
    } as PodRecord);
  }
  const page = await registry.list(RECORDS, { limit: 3 });
  expect([page.items.length, page.metadata.remainingItemCount]).toEqual([2, 1]);
  expect(await names(started, { limit: 3, continue: page.metadata.continue })).toEqual(['c']);
});
