import { expect, onTestFinished, test } from 'vitest';
import { anyKind, createCatalog, type KindCatalog } from '../api/catalog.ts';
import { kinds } from '../api/kinds.ts';
import type { WatchEvent } from '../ports/backend.ts';
import { delayWatch } from '../store/delayed-watch-fixture.ts';
import { createMemoryStore } from '../store/memory/memory-store.ts';
import { CONFIG_MAPS, configMap, object, startRegistry } from './registry/testing.ts';
import { startTestServer } from './server-fixture.ts';
import { widget } from './widget-fixture.ts';

const WIDGETS = { group: 'example.com', version: 'v1', resource: 'widgets' };
const PATH = '/apis/example.com/v1/namespaces/default/widgets?watch=1';
const NOT_FOUND = 'the server could not find the requested resource';

const widgetOf = (name: string, data: Record<string, string> = {}) =>
  object('Widget', name, { apiVersion: 'example.com/v1', data });

function catalogWithWidgets(): KindCatalog {
  const catalog = createCatalog(kinds);
  catalog.add(anyKind(widget));
  // The types of a kind are registered for the whole process as long as a catalog has the kind.
  onTestFinished(() => catalog.remove(anyKind(widget)));
  return catalog;
}

test('a watch whose kind is removed while the watch waits for the cache ends, and sends only the error', async () => {
  const catalog = catalogWithWidgets();
  let held: (() => void)[] | undefined;
  const store = delayWatch(createMemoryStore(), (deliver) => {
    if (held === undefined) queueMicrotask(deliver);
    else held.push(deliver);
  });
  const { registry, settled } = await startRegistry({ store, catalog });
  await registry.create(WIDGETS, 'default', widgetOf('a'));
  await settled();
  held = [];
  // The cache reaches the revision of this object only when the held change is delivered.
  await registry.create(CONFIG_MAPS, 'default', configMap('later'));
  const events: WatchEvent[] = [];
  const watch = registry.watch(WIDGETS, {}, (event) => void events.push(event), new AbortController().signal);
  catalog.remove(anyKind(widget));
  const changes = held;
  held = undefined;
  for (const deliver of changes) deliver();
  await watch;
  expect(events).toEqual([{ type: 'ERROR', object: expect.objectContaining({ code: 404, message: NOT_FOUND }) }]);
});

test.each(['application/json', 'application/vnd.kubernetes.protobuf'])(
  'a watch in %s whose events wait for its client sends them and the error when its kind is removed',
  async (accept) => {
    const catalog = catalogWithWidgets();
    const { backend, registry, settled } = await startRegistry({ catalog });
    await using at = await startTestServer({ backend, catalog });
    const watch = await at.open('GET', PATH, { headers: { accept } });
    watch.pause();
    // More than the buffers of the connection take, and less than the limit of waiting events.
    const names = Array.from({ length: 70 }, (_, index) => `widget-${index}-end`);
    for (const name of names) await registry.create(WIDGETS, 'default', widgetOf(name, { x: 'y'.repeat(100_000) }));
    await settled();
    catalog.remove(anyKind(widget));
    const text = Buffer.concat(await watch.toArray()).toString('latin1');
    expect(names.filter((name) => !text.includes(name))).toEqual([]);
    expect(text).toContain(NOT_FOUND);
    expect(at.errors).toEqual([]);
  },
);
