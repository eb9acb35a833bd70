import fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyKind, createCatalog, type KindCatalog } from '../../../api/catalog.ts';
import { configMapKind } from '../../../api/core/v1/config-map/index.ts';
import type { ConfigMap } from '../../../api/generated/types.ts';
import type { KindDefinition } from '../../../api/kind.ts';
import { kinds } from '../../../api/kinds.ts';
import type { KubeObject } from '../../../machinery/meta.ts';
import { isApiError } from '../../../machinery/status.ts';
import type { ListOptions, WatchEvent, WatchOptions } from '../../../ports/backend.ts';
import { ref, type Started, startRegistry } from '../testing.ts';

const WIDGETS = ref('widgets', 'example.com');
const NAMESPACES = ['default', 'kube-system'];
const COLORS = ['', 'red', 'blue'];
const NAMES = ['a', 'b', 'c', 'd-d', 'd'];

let inspected = 0;

/** The fields with a name that begins with `scanned.` have the same values as the indexed fields, but have no index. */
const widgetKind: KindDefinition<ConfigMap> = {
  ...configMapKind,
  group: 'example.com',
  kind: 'Widget',
  plural: 'widgets',
  selectableFields({ data: { color = '', size = '' } = {} }) {
    inspected++;
    return { color, size, 'scanned.color': color, 'scanned.size': size };
  },
  indexedFields: ['color', 'size'],
};

const widget = (namespace: string, name: string, data: Record<string, string>): KubeObject =>
  ({ apiVersion: 'example.com/v1', kind: 'Widget', metadata: { namespace, name }, data }) as KubeObject;

async function startWithWidgets(): Promise<Started & { catalog: KindCatalog; widgets: KindDefinition }> {
  const catalog = createCatalog(kinds);
  const widgets = anyKind(widgetKind);
  catalog.add(widgets);
  return { ...(await startRegistry({ catalog })), catalog, widgets };
}

function startWatch({ registry }: Started, options: WatchOptions, signal = new AbortController().signal): WatchEvent[] {
  const events: WatchEvent[] = [];
  void registry.watch(WIDGETS, options, (event) => events.push(event), signal);
  return events;
}

interface Write {
  verb: 'create' | 'update' | 'delete';
  namespace: string;
  name: string;
  color: string;
  size: string;
}
const write: fc.Arbitrary<Write> = fc.record({
  verb: fc.constantFrom('create', 'update', 'delete'),
  namespace: fc.constantFrom(...NAMESPACES),
  name: fc.constantFrom(...NAMES),
  color: fc.constantFrom(...COLORS),
  size: fc.constantFrom('', '1', '2'),
});
const writes = fc.array(write, { minLength: 1, maxLength: 40 });

/** The writes are random, so NotFound and AlreadyExists are success. */
async function run({ registry }: Started, all: readonly Write[]): Promise<void> {
  for (const { verb, namespace, name, color, size } of all) {
    const body = widget(namespace, name, { color, size });
    try {
      if (verb === 'create') await registry.create(WIDGETS, namespace, body);
      else if (verb === 'update') await registry.update(WIDGETS, body);
      else await registry.delete(WIDGETS, namespace, name);
    } catch (error) {
      if (!isApiError(error, 'NotFound') && !isApiError(error, 'AlreadyExists')) throw error;
    }
  }
}

const selectors = [
  ...COLORS.map((color) => `color=${color}`),
  'color==red',
  'color!=red',
  'size=1',
  'color=red,size=2',
  'size=1,color!=blue',
  'color=red,color=blue',
  'color=red,metadata.namespace=default',
];
const scanned = (selector: string): string => selector.replaceAll(/color|size/g, 'scanned.$&');
const queries: ListOptions[] = [undefined, ...NAMESPACES].flatMap((namespace) =>
  selectors.map((fieldSelector) => ({ namespace, fieldSelector })),
);

async function listPages({ registry }: Started, options: ListOptions): Promise<KubeObject[]> {
  const items: KubeObject[] = [];
  for (let token: string | undefined, isFirst = true; isFirst || token !== undefined; isFirst = false) {
    const page = await registry.list(WIDGETS, { ...options, continue: token });
    items.push(...page.items);
    token = page.metadata.continue;
  }
  return items;
}

test('a list by an indexed field equals a scan after any writes', async () => {
  await fc.assert(
    fc.asyncProperty(writes, writes, fc.integer({ min: 1, max: 3 }), async (before, after, limit) => {
      const started = await startWithWidgets();
      // The lists of the first round build the indexes. The lists of the second round use the indexes after further writes.
      for (const each of [before, after]) {
        await run(started, each);
        for (const query of queries) {
          const { items } = await started.registry.list(WIDGETS, query);
          const scan = { ...query, fieldSelector: scanned(query.fieldSelector ?? '') };
          expect(items).toEqual((await started.registry.list(WIDGETS, scan)).items);
          expect(await listPages(started, { ...query, limit })).toEqual(items);
        }
      }
    }),
    { numRuns: 20 },
  );
});

test('a watch by an indexed field reports the same events as a scan of all changes', async () => {
  await fc.assert(
    fc.asyncProperty(writes, writes, writes, async (before, missed, after) => {
      const started = await startWithWidgets();
      await run(started, before);
      await started.settled();
      const resourceVersion = String(started.registry.revision());
      await run(started, missed);
      const controller = new AbortController();
      const watches = [{}, { resourceVersion }].flatMap((from) =>
        queries.map((query) => ({
          byIndex: startWatch(started, { ...query, ...from }, controller.signal),
          byScan: startWatch(
            started,
            { ...query, ...from, fieldSelector: scanned(query.fieldSelector ?? '') },
            controller.signal,
          ),
        })),
      );
      await started.settled();
      await run(started, after);
      await started.settled();
      controller.abort();
      for (const { byIndex, byScan } of watches) expect(byIndex).toEqual(byScan);
    }),
    { numRuns: 20 },
  );
});

test('a list and the initial state of a watch inspect only the objects with the value of an indexed field', async () => {
  const started = await startWithWidgets();
  for (let n = 0; n < 200; n++) {
    const namespace = NAMESPACES[n % 2] as string;
    await started.registry.create(WIDGETS, namespace, widget(namespace, `w${n}`, { color: `c${n % 20}` }));
  }
  const count = async (options: ListOptions): Promise<number> => {
    inspected = 0;
    await started.registry.list(WIDGETS, options);
    return inspected;
  };
  // Each request inspects one empty object to learn the names of the fields.
  expect(await count({ fieldSelector: 'scanned.color=c3' })).toBe(201);
  // The first list by a field builds its index.
  expect(await count({ fieldSelector: 'color=c3' })).toBe(211);
  expect(await count({ fieldSelector: 'color=c3' })).toBe(11);
  expect(await count({ fieldSelector: 'color=c3', namespace: 'default' })).toBe(1);
  expect(await count({ fieldSelector: 'color=c3', namespace: 'kube-system' })).toBe(11);
  inspected = 0;
  const events = startWatch(started, { fieldSelector: 'color=c3' });
  await started.settled();
  expect(events).toHaveLength(10);
  expect(inspected).toBe(11);
});

test('a change is compared with one watch by the value of an indexed field, not with the watches by other values', async () => {
  const started = await startWithWidgets();
  const colors = Array.from({ length: 50 }, (_, n) => `c${n}`);
  const watches = colors.map((color) => startWatch(started, { fieldSelector: `color=${color}` }));
  await started.settled();
  inspected = 0;
  await started.registry.create(WIDGETS, 'default', widget('default', 'a', { color: 'c7' }));
  await started.registry.update(WIDGETS, widget('default', 'a', { color: 'c9' }));
  await started.registry.delete(WIDGETS, 'default', 'a');
  await started.settled();
  expect(watches.map((events) => events.map(({ type }) => type)).filter((types) => types.length > 0)).toEqual([
    ['ADDED', 'DELETED'],
    ['ADDED', 'DELETED'],
  ]);
  expect(inspected).toBeLessThan(40);
});

test('a kind that is removed and added with another value of an indexed field gets a new index', async () => {
  const { registry, catalog, widgets } = await startWithWidgets();
  await registry.create(WIDGETS, 'default', widget('default', 'a', { color: 'red', size: 'blue' }));
  const named = async (fieldSelector: string) =>
    (await registry.list(WIDGETS, { fieldSelector })).items.map(({ metadata }) => metadata.name);
  expect(await named('color=red')).toEqual(['a']);
  catalog.remove(widgets);
  const changed = { ...widgetKind, selectableFields: ({ data }: ConfigMap) => ({ color: data?.['size'] ?? '' }) };
  catalog.add(anyKind({ ...changed, indexedFields: ['color'] }));
  expect(await named('color=red')).toEqual([]);
  expect(await named('color=blue')).toEqual(['a']);
});
