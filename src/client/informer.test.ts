import { expect, test } from 'vitest';
import { CONFIG_MAPS } from '../api/resources.ts';
import type { KubeObject } from '../machinery/meta.ts';
import { serviceUnavailable } from '../machinery/status.ts';
import { silentLog } from '../platform/silent-log.ts';
import { createVirtualTimers } from '../platform/virtual-timers.ts';
import { createInformer } from './informer.ts';
import { type RegistryBackend, registryBackend } from './registry-fixture.ts';
import { clientOf } from './typed-client.ts';

const object = (name: string, data: Record<string, string> = {}): KubeObject & { data?: unknown } => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'a' },
  data,
});

const updateOf = (old: KubeObject, { metadata }: KubeObject): string =>
  `updated ${metadata.name} ${old.metadata.resourceVersion}>${metadata.resourceVersion}`;

function holdWatches(backend: RegistryBackend): () => void {
  const { watch } = backend;
  const released = Promise.withResolvers<void>();
  backend.watch = async (...call) => {
    await released.promise;
    return watch(...call);
  };
  return released.resolve;
}

async function setUp(options: { fieldSelector?: string } = {}) {
  const timers = createVirtualTimers();
  const backend = await registryBackend({ timers });
  const stop = new AbortController();
  const heard: string[] = [];
  let wake = (): void => {};
  const record = (text: string): void => {
    heard.push(text);
    wake();
  };
  const start = () =>
    createInformer(
      clientOf(backend).resource(CONFIG_MAPS),
      { ...options, log: silentLog, timers, signal: stop.signal },
      {
        added: (each) => record(`added ${each.metadata.name}`),
        updated: (each, old) => record(updateOf(old, each)),
        deleted: (each) => record(`deleted ${each.metadata.name}`),
      },
    );
  const until = async (count: number): Promise<void> => {
    while (heard.length < count) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
  const called = async (text: string, count: number): Promise<void> => {
    while (backend.calls.filter((call) => call === text).length < count) await new Promise(setImmediate);
  };
  return { backend, timers, stop, heard, start, until, called };
}

test('an informer calls the handlers for existing objects, then for each change, and keeps a copy', async () => {
  const { backend, heard, start, stop, called } = await setUp();
  const before = await backend.set(CONFIG_MAPS, object('x'));
  const informer = start();
  await informer.synced;
  expect(heard).toEqual(['added x']);
  await called('watch configmaps /', 1);
  await backend.set(CONFIG_MAPS, object('y'));
  const after = await backend.set(CONFIG_MAPS, object('x', { k: '1' }));
  await backend.remove(CONFIG_MAPS, 'a', 'y');
  expect(heard.slice(1)).toEqual(['added y', updateOf(before, after), 'deleted y']);
  expect(informer.list().map((each) => each.metadata.name)).toEqual(['x']);
  expect(informer.get('a', 'x')?.metadata.resourceVersion).toBe(after.metadata.resourceVersion);
  stop.abort();
});

test('an informer ignores objects that its field selector excludes', async () => {
  const { backend, heard, start, stop, called } = await setUp({ fieldSelector: 'metadata.name=x' });
  await backend.set(CONFIG_MAPS, object('y'));
  await start().synced;
  await called('watch configmaps /', 1);
  await backend.set(CONFIG_MAPS, object('x'));
  expect(heard).toEqual(['added x']);
  stop.abort();
});

test('reached() resolves once the copy contains a written object, and gone() once it no longer contains a deleted one', async () => {
  const { backend, timers, heard, start, stop, called } = await setUp();
  const informer = start();
  await informer.synced;
  await called('watch configmaps /', 1);
  timers.advance(1000);
  const watchAgain = holdWatches(backend);
  backend.endWatches();
  const x = await backend.set(CONFIG_MAPS, object('x'));
  let has = false;
  const reached = informer.reached(x.metadata.resourceVersion).then(() => {
    has = true;
  });
  await new Promise(setImmediate);
  expect(has).toBe(false);
  watchAgain();
  await reached;
  expect(informer.get('a', 'x')).toEqual(x);
  expect(heard).toEqual(['added x']);
  const gone = informer.gone(x);
  await backend.remove(CONFIG_MAPS, 'a', 'x');
  await gone;
  expect(informer.get('a', 'x')).toBeUndefined();
  const never = informer.reached('1000000');
  stop.abort();
  await never;
});

test('after a lost watch, an informer watches again from the last revision, without a list', async () => {
  const { backend, timers, heard, start, stop, until, called } = await setUp();
  await start().synced;
  await called('watch configmaps /', 1);
  await backend.set(CONFIG_MAPS, object('x'));
  timers.advance(1000);
  const watchAgain = holdWatches(backend);
  backend.endWatches();
  await backend.set(CONFIG_MAPS, object('y'));
  watchAgain();
  await until(2);
  expect(heard).toEqual(['added x', 'added y']);
  expect(backend.calls.filter((call) => call.startsWith('list'))).toHaveLength(1);
  stop.abort();
});

// The API server keeps at most the last 1000 events of a resource. After more changes than that, the informer's revision has expired.
test('after 410 Gone, an informer lists again and calls the handlers for the difference', async () => {
  const { backend, timers, heard, start, stop, until, called } = await setUp();
  for (const name of ['same', 'gone', 'replaced']) await backend.set(CONFIG_MAPS, object(name));
  const before = await backend.set(CONFIG_MAPS, object('changed'));
  await start().synced;
  await called('watch configmaps /', 1);
  timers.advance(1000);
  const watchAgain = holdWatches(backend);
  backend.endWatches();
  let after = before;
  for (let i = 0; i <= 1000; i++) after = await backend.set(CONFIG_MAPS, object('changed', { k: `${i}` }));
  await backend.remove(CONFIG_MAPS, 'a', 'gone');
  await backend.remove(CONFIG_MAPS, 'a', 'replaced');
  await backend.set(CONFIG_MAPS, object('replaced'));
  await backend.set(CONFIG_MAPS, object('new'));
  watchAgain();
  await until(9);
  expect(heard.slice(4).sort()).toEqual([
    'added new',
    'added replaced',
    'deleted gone',
    'deleted replaced',
    updateOf(before, after),
  ]);
  expect(heard.indexOf('deleted replaced')).toBeLessThan(heard.lastIndexOf('added replaced'));
  stop.abort();
});

test('an informer retries a failed list with exponential back-off', async () => {
  const { backend, timers, heard, start, stop, called } = await setUp();
  await backend.set(CONFIG_MAPS, object('x'));
  for (let i = 0; i < 3; i++) backend.failNext('list', serviceUnavailable('not yet'));
  const informer = start();
  await called('list configmaps /', 2);
  timers.advance(99);
  await new Promise(setImmediate);
  expect(backend.calls).toHaveLength(2);
  timers.advance(101);
  await called('list configmaps /', 3);
  timers.advance(400);
  await informer.synced;
  expect(heard).toEqual(['added x']);
  stop.abort();
});

test('a handler that throws does not keep later objects from being handled', async () => {
  const { backend, timers, stop } = await setUp();
  await backend.set(CONFIG_MAPS, object('x'));
  await backend.set(CONFIG_MAPS, object('y'));
  const seen: string[] = [];
  const client = clientOf(backend).resource(CONFIG_MAPS);
  const added = (each: KubeObject): void => {
    seen.push(each.metadata.name);
    throw new Error('boom');
  };
  await createInformer(client, { log: silentLog, timers, signal: stop.signal }, { added }).synced;
  expect(seen).toEqual(['x', 'y']);
  stop.abort();
});

test('an informer that is stopped before its first list resolves `synced` and makes no further calls', async () => {
  const { backend, timers, start, stop, called } = await setUp();
  for (let i = 0; i < 2; i++) backend.failNext('list', serviceUnavailable('not yet'));
  const informer = start();
  await called('list configmaps /', 2);
  stop.abort();
  await informer.synced;
  timers.advance(60_000);
  await new Promise(setImmediate);
  expect(backend.calls).toHaveLength(2);
});

test('an informer lists in pages of `pageSize` and stores the transformed objects', async () => {
  const { backend, timers, stop, called } = await setUp();
  for (const name of ['a', 'b', 'c', 'd', 'e']) await backend.set(CONFIG_MAPS, object(name, { size: name }));
  const heard: string[] = [];
  const informer = createInformer<ReturnType<typeof object>, KubeObject & { size: number }>(
    clientOf(backend).resource(CONFIG_MAPS),
    { pageSize: 2, log: silentLog, timers, signal: stop.signal },
    {
      added: (each) => heard.push(`added ${each.size}`),
      updated: (each, old) => heard.push(`updated ${old.size} ${each.size}`),
      deleted: (each) => heard.push(`deleted ${each.size}`),
    },
    ({ apiVersion, kind, metadata, data }) => ({ apiVersion, kind, metadata, size: JSON.stringify(data).length }),
  );
  await informer.synced;
  expect(backend.calls.filter((call) => call.startsWith('list'))).toHaveLength(3);
  expect(heard).toEqual(Array(5).fill('added 12'));
  await called('watch configmaps /', 1);
  await backend.set(CONFIG_MAPS, object('a', { size: 'more' }));
  await backend.remove(CONFIG_MAPS, 'a', 'a');
  expect(heard.slice(5)).toEqual(['updated 12 15', 'deleted 15']);
  expect(informer.list().map((each) => Object.keys(each))).toEqual(
    Array(4).fill(['apiVersion', 'kind', 'metadata', 'size']),
  );
  stop.abort();
});
