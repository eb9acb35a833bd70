/** Tests properties that hold for any order of writers and readers. fast-check prints the seed of a failure. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { KubeObject } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import type { WatchEvent } from '../../ports/backend.ts';
import { CONFIG_MAPS, configMap, type Started, startRegistry } from './testing.ts';

const MERGE = 'application/merge-patch+json';
const NAMESPACES = ['default', 'kube-system'];

interface Operation {
  verb: 'create' | 'update' | 'delete';
  namespace: string;
  name: string;
  label: string;
}

const operation: fc.Arbitrary<Operation> = fc.record({
  verb: fc.constantFrom('create', 'update', 'delete'),
  namespace: fc.constantFrom(...NAMESPACES),
  name: fc.constantFrom('a', 'b', 'c', 'd-d', 'd'),
  label: fc.constantFrom('x', 'y'),
});
const operations = fc.array(operation, { minLength: 1, maxLength: 40 });

let counter = 0;

/** The operations are random, so NotFound and AlreadyExists are success. */
async function run({ registry }: Started, { verb, namespace, name, label }: Operation): Promise<void> {
  const body = configMap(name, { n: String(counter++) }, { namespace, labels: { app: label } });
  try {
    if (verb === 'create') await registry.create(CONFIG_MAPS, namespace, body);
    else if (verb === 'update') await registry.update(CONFIG_MAPS, body);
    else await registry.delete(CONFIG_MAPS, namespace, name);
  } catch (error) {
    if (!isApiError(error, 'NotFound') && !isApiError(error, 'AlreadyExists')) throw error;
  }
}

const place = ({ metadata }: KubeObject): string => `${metadata.namespace}/${metadata.name}`;

/** Applies watch events to a set of objects, as a client does. Checks that each event is consistent with the set. */
function applyEvents(objects: Map<string, KubeObject>, events: readonly WatchEvent[]): void {
  let last = 0;
  for (const event of events) {
    if (event.type === 'ERROR') throw new Error(event.object.message);
    const key = place(event.object);
    const revision = Number(event.object.metadata.resourceVersion);
    expect(revision).toBeGreaterThan(last);
    last = revision;
    expect(objects.has(key)).toBe(event.type !== 'ADDED');
    if (event.type === 'DELETED') objects.delete(key);
    else objects.set(key, event.object);
  }
}

const sorted = (objects: Iterable<KubeObject>): KubeObject[] =>
  [...objects].sort((a, b) => (`${place(a)}` < `${place(b)}` ? -1 : 1));

test('concurrent writers never lose an update', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 2, max: 8 }), fc.integer({ min: 1, max: 6 }), async (writers, rounds) => {
      const { registry } = await startRegistry();
      await registry.create(CONFIG_MAPS, 'default', configMap('a', { count: '0' }));
      const increment = async (): Promise<void> => {
        for (;;) {
          const old = (await registry.get(CONFIG_MAPS, 'default', 'a')) as KubeObject & { data: { count: string } };
          const data = { ...old.data, count: String(Number(old.data.count) + 1) };
          try {
            await registry.update(CONFIG_MAPS, { ...old, data } as KubeObject);
            return;
          } catch (error) {
            if (!isApiError(error, 'Conflict')) throw error;
          }
        }
      };
      const write = async (writer: number): Promise<void> => {
        for (let round = 0; round < rounds; round++) {
          // The registry retries the patch, whose key only this writer uses. The update of the shared key contains a resourceVersion, so it
          // is refused after a race.
          await registry.patch(CONFIG_MAPS, 'default', 'a', MERGE, { data: { [`w${writer}`]: String(round) } });
          await increment();
        }
      };
      await Promise.all(Array.from({ length: writers }, (_, writer) => write(writer)));
      const { data } = (await registry.get(CONFIG_MAPS, 'default', 'a')) as KubeObject & {
        data: Record<string, string>;
      };
      expect(data['count']).toBe(String(writers * rounds));
      for (let writer = 0; writer < writers; writer++) expect(data[`w${writer}`]).toBe(String(rounds - 1));
    }),
    { numRuns: 20 },
  );
});

test('the pages of a list together equal the list at the time of its first page', async () => {
  await fc.assert(
    fc.asyncProperty(
      operations,
      fc.array(operations, { minLength: 1, maxLength: 5 }),
      fc.integer({ min: 1, max: 4 }),
      fc.constantFrom(undefined, ...NAMESPACES),
      fc.constantFrom(undefined, 'app=x'),
      async (before, between, limit, namespace, labelSelector) => {
        const started = await startRegistry();
        for (const each of before) await run(started, each);
        const options = { namespace, labelSelector };
        const whole = await started.registry.list(CONFIG_MAPS, options);
        const paged: KubeObject[] = [];
        let page = await started.registry.list(CONFIG_MAPS, { ...options, limit });
        for (let index = 0; ; index++) {
          expect(page.metadata.resourceVersion).toBe(whole.metadata.resourceVersion);
          expect(page.items.length).toBeLessThanOrEqual(limit);
          paged.push(...page.items);
          if (page.metadata.continue === undefined) break;
          if (labelSelector === undefined) {
            expect(page.metadata.remainingItemCount).toBe(whole.items.length - paged.length);
          }
          for (const each of between[index % between.length] ?? []) await run(started, each);
          page = await started.registry.list(CONFIG_MAPS, { ...options, limit, continue: page.metadata.continue });
        }
        expect(paged).toEqual(whole.items);
      },
    ),
    { numRuns: 60 },
  );
});

test('a watch that is resumed at any point gets every event once', async () => {
  await fc.assert(
    fc.asyncProperty(
      operations,
      fc.array(fc.nat(), { minLength: 1, maxLength: 4 }),
      fc.constantFrom(undefined, ...NAMESPACES),
      fc.constantFrom(undefined, 'app=x', 'app!=x'),
      async (changes, cuts, namespace, labelSelector) => {
        const started = await startRegistry();
        const options = { namespace, labelSelector };
        const objects = new Map<string, KubeObject>();
        const cutAfter = new Set(cuts.map((cut) => cut % changes.length));
        let resourceVersion = String(started.registry.revision());
        let events: WatchEvent[] = [];
        let controller = new AbortController();
        const watch = () =>
          started.registry.watch(
            CONFIG_MAPS,
            { ...options, resourceVersion },
            (e) => events.push(e),
            controller.signal,
          );
        let ended = watch();
        for (const [index, change] of changes.entries()) {
          await run(started, change);
          if (!cutAfter.has(index)) continue;
          controller.abort();
          await ended;
          applyEvents(objects, events);
          resourceVersion = events.at(-1)?.object.metadata.resourceVersion ?? resourceVersion;
          await run(started, changes[(index * 7 + 3) % changes.length] as Operation);
          events = [];
          controller = new AbortController();
          ended = watch();
        }
        controller.abort();
        await ended;
        applyEvents(objects, events);
        const { items } = await started.registry.list(CONFIG_MAPS, options);
        expect(sorted(objects.values())).toEqual(sorted(items));
      },
    ),
    { numRuns: 60 },
  );
});
