import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JsonObject, JsonValue } from '../json-value.ts';
import { ApiError } from '../status.ts';
import { cpuMillisOf, frozen } from '../testing.ts';
import { applyStrategicMergePatch, type FieldStrategy, type StrategyLookup } from './strategic-merge-patch.ts';

/**
 * The strategies of a small kind: containers are merged by name, their ports by number, and finalizers as scalars; args are replaced as a
 * whole; volumes are merged by name and support $retainKeys; source is replaced.
 */
const tables: Record<string, Record<string, FieldStrategy>> = {
  container: { ports: { strategy: 'merge', mergeKey: 'port' }, args: {} },
};
const lookupOf =
  (table: Record<string, FieldStrategy>): StrategyLookup =>
  (field) =>
    Object.hasOwn(table, field) ? table[field] : undefined;
const pod: StrategyLookup = lookupOf({
  containers: { strategy: 'merge', mergeKey: 'name', fields: lookupOf(tables['container'] ?? {}) },
  volumes: { strategy: 'merge,retainKeys', mergeKey: 'name' },
  finalizers: { strategy: 'merge' },
  args: {},
  labels: {},
  source: { strategy: 'replace' },
});

const patched = (object: unknown, patch: unknown): JsonObject =>
  applyStrategicMergePatch(frozen(object) as JsonObject, frozen(patch), pod);
const named = (...names: string[]): { name: string }[] => names.map((name) => ({ name }));

describe('strategic merge patch', () => {
  it.each<[string, JsonValue, JsonValue, JsonValue]>([
    [
      'merges objects',
      { labels: { a: '1', b: '2' } },
      { labels: { b: '3', c: '4' } },
      { labels: { a: '1', b: '3', c: '4' } },
    ],
    [
      'deletes fields with null',
      { labels: { a: '1', b: '2' }, x: 1 },
      { labels: { a: null }, x: null, y: null },
      { labels: { b: '2' } },
    ],
    ['drops nulls in new objects', {}, { labels: { a: null, b: '1' } }, { labels: { b: '1' } }],
    ['replaces a list that has no strategy', { args: ['a', 'b'] }, { args: ['c'] }, { args: ['c'] }],
    ['replaces an atomic list of objects', { other: named('a') }, { other: named('b') }, { other: named('b') }],
    ['replaces an object whose strategy says so', { source: { a: 1 } }, { source: { b: 2 } }, { source: { b: 2 } }],
    ['replaces a value of a different type', { labels: 'x' }, { labels: { a: '1' } }, { labels: { a: '1' } }],
    [
      'merges list elements by key',
      { containers: [{ name: 'a', image: 'x', args: ['1'] }, { name: 'b' }] },
      { containers: [{ name: 'a', image: 'y' }] },
      { containers: [{ name: 'a', image: 'y', args: ['1'] }, { name: 'b' }] },
    ],
    [
      'merges lists in list elements',
      { containers: [{ name: 'a', ports: [{ port: 1, hostPort: 9 }, { port: 2 }] }] },
      { containers: [{ name: 'a', ports: [{ port: 3 }, { port: 1, hostPort: null }] }] },
      { containers: [{ name: 'a', ports: [{ port: 3 }, { port: 1 }, { port: 2 }] }] },
    ],
    [
      'puts new elements first',
      { containers: named('a') },
      { containers: named('b') },
      { containers: named('b', 'a') },
    ],
    ['creates a list', {}, { containers: named('b', 'a') }, { containers: named('b', 'a') }],
    [
      'deletes a list element',
      { containers: named('a', 'b', 'c') },
      {
        containers: [
          { name: 'b', $patch: 'delete' },
          { name: 'none', $patch: 'delete' },
        ],
      },
      { containers: named('a', 'c') },
    ],
    [
      'ignores the deletion of an absent element',
      {},
      { containers: [{ name: 'b', $patch: 'delete' }] },
      { containers: [] },
    ],
    [
      'replaces a whole list',
      { containers: named('a', 'b') },
      { containers: [{ $patch: 'replace' }, { name: 'c' }] },
      { containers: named('c') },
    ],
    [
      'replaces a whole object',
      { labels: { a: '1' } },
      { labels: { $patch: 'replace', b: '2' } },
      { labels: { b: '2' } },
    ],
    ['empties an object', { labels: { a: '1' } }, { labels: { $patch: 'delete' } }, { labels: {} }],
    [
      'merges an object with the directive merge',
      { labels: { a: '1' } },
      { labels: { $patch: 'merge', b: '2' } },
      { labels: { a: '1', b: '2' } },
    ],
    ['merges scalars', { finalizers: ['a', 'b'] }, { finalizers: ['c', 'a'] }, { finalizers: ['c', 'a', 'b'] }],
    [
      'deletes scalars',
      { finalizers: ['a', 'b', 'c'] },
      { '$deleteFromPrimitiveList/finalizers': ['b', 'x'] },
      { finalizers: ['a', 'c'] },
    ],
    [
      'deletes and adds scalars in the given order',
      { finalizers: ['a', 'b'] },
      { '$setElementOrder/finalizers': ['c', 'a'], '$deleteFromPrimitiveList/finalizers': ['b'], finalizers: ['c'] },
      { finalizers: ['c', 'a'] },
    ],
    [
      'orders a list without changing elements',
      { containers: named('a', 'b', 'c') },
      { '$setElementOrder/containers': named('c', 'a', 'b') },
      { containers: named('c', 'a', 'b') },
    ],
    [
      'keeps an element that only the object has in front of the next element',
      { containers: named('a', 'injected', 'b') },
      { '$setElementOrder/containers': named('new', 'a', 'b'), containers: named('new') },
      { containers: named('new', 'a', 'injected', 'b') },
    ],
    ['ignores the order of an absent list', { x: 1 }, { '$setElementOrder/containers': named('a') }, { x: 1 }],
    [
      'orders a list and deletes an element',
      { containers: named('a', 'b', 'c') },
      { '$setElementOrder/containers': named('c', 'a'), containers: [{ name: 'b', $patch: 'delete' }] },
      { containers: named('c', 'a') },
    ],
    [
      'creates a list in the given order',
      {},
      { '$setElementOrder/containers': named('a', 'b'), containers: named('a', 'b') },
      { containers: named('a', 'b') },
    ],
    [
      'deletes keys that are not retained',
      { volumes: [{ name: 'v', emptyDir: {}, x: 1 }] },
      { volumes: [{ name: 'v', $retainKeys: ['name', 'hostPath'], hostPath: { path: '/' }, emptyDir: null }] },
      { volumes: [{ name: 'v', hostPath: { path: '/' } }] },
    ],
    [
      'removes directives from new objects',
      {},
      { a: { $retainKeys: ['b'], b: 1, c: [{ $patch: 'delete', d: 1 }] } },
      { a: { b: 1, c: [] } },
    ],
  ])('a strategic merge patch %s', (_, object, patch, expected) => {
    expect(patched(object, patch)).toEqual(expected);
  });

  it.each<[string, JsonValue, unknown, string]>([
    ['a patch that is not an object', {}, [1], 'invalid JSON document'],
    [
      'an unknown directive',
      { labels: {} },
      { labels: { $patch: 'frob' } },
      'unknown patch type: frob in map: map[$patch:frob]',
    ],
    [
      'an unknown directive in a list',
      { containers: named('a') },
      { containers: [{ $patch: 'frob' }] },
      'unknown patch type: frob in map: map[$patch:frob]',
    ],
    [
      'the directive merge in a list',
      { containers: named('a') },
      { containers: [{ $patch: 'merge' }] },
      'merging lists cannot yet be specified in the patch',
    ],
    [
      'an element without the merge key',
      { containers: named('a') },
      { containers: [{ image: 'x' }] },
      'map: map[image:x] does not contain declared merge key: name',
    ],
    [
      'a deletion without the merge key',
      { containers: named('a') },
      { containers: [{ $patch: 'delete' }] },
      'map: map[$patch:delete] does not contain declared merge key: name',
    ],
    [
      'an order that is not a list',
      {},
      { '$setElementOrder/containers': {} },
      'invalid patch format of setElementOrder list',
    ],
    [
      'deletions that are not a list',
      { finalizers: [] },
      { '$deleteFromPrimitiveList/finalizers': 'a' },
      'invalid patch format of primitive list',
    ],
    ['retained keys that are not a list', {}, { $retainKeys: 'a' }, 'invalid patch format of retainKeys'],
    ['a key that is not retained', {}, { $retainKeys: ['a'], b: 1 }, 'invalid patch format of retainKeys'],
    [
      'elements of different types',
      { containers: named('a') },
      { containers: ['a'] },
      'list element types are not identical: [[map[name:a]] [a]]',
    ],
    ['lists of lists', { finalizers: ['a'] }, { finalizers: [['a']] }, 'lists of lists are not supported'],
    [
      'elements that the order does not contain',
      { containers: named('a') },
      { '$setElementOrder/containers': named('a'), containers: named('b') },
      "The order in patch list:\n[map[name:b]]\n doesn't match $setElementOrder list:\n[map[name:a]]\n",
    ],
  ])('a strategic merge patch rejects %s', (_, object, patch, message) => {
    expect(() => patched(object, patch)).toThrow(ApiError);
    expect(() => patched(object, patch)).toThrow(message);
  });

  it('a strategic merge patch does not modify prototypes', () => {
    patched({ labels: {} }, JSON.parse('{"__proto__":{"polluted":1},"labels":{"__proto__":{"polluted":1}}}'));
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });
});

describe('properties of strategic merge patches', () => {
  const port = fc.record({ port: fc.integer({ min: 1, max: 4 }), hostPort: fc.nat(3) }, { requiredKeys: ['port'] });
  const container = fc.record(
    {
      name: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
      image: fc.constantFrom('x', 'y'),
      args: fc.array(fc.constantFrom('1', '2'), { maxLength: 2 }),
      ports: fc.uniqueArray(port, { selector: (p) => p.port, maxLength: 3 }),
    },
    { requiredKeys: ['name'] },
  );
  const object = fc.record({
    containers: fc.uniqueArray(container, { selector: (c) => c.name }),
    finalizers: fc.uniqueArray(fc.constantFrom('f', 'g', 'h')),
    labels: fc.dictionary(fc.constantFrom('k', 'l'), fc.constantFrom('1', '2')),
  }) as unknown as fc.Arbitrary<JsonObject>;

  type Keyed = Record<string, JsonValue>;
  /** Returns a patch from the list `from` to `to` as kubectl does: changes, deletions and the order of the elements. */
  function diffList(key: string, mergeKey: string, from: Keyed[], to: Keyed[]): JsonObject {
    const changes = to.map((element) => {
      const old = from.find((candidate) => candidate[mergeKey] === element[mergeKey]);
      return old === undefined ? element : diff(old, element, [mergeKey]);
    });
    const deletions = from
      .filter((element) => !to.some((candidate) => candidate[mergeKey] === element[mergeKey]))
      .map((element) => ({ [mergeKey]: element[mergeKey] as JsonValue, $patch: 'delete' }));
    const order = to.map((element) => ({ [mergeKey]: element[mergeKey] as JsonValue }));
    return { [key]: [...changes, ...deletions], [`$setElementOrder/${key}`]: order };
  }
  function diff(from: Keyed, to: Keyed, keep: string[] = []): JsonObject {
    const patch: JsonObject = {};
    for (const key of Object.keys(from)) if (!(key in to)) patch[key] = null;
    for (const [key, value] of Object.entries(to)) {
      const old = from[key];
      if ((key === 'containers' || key === 'ports') && old !== undefined) {
        Object.assign(patch, diffList(key, key === 'ports' ? 'port' : 'name', old as Keyed[], value as Keyed[]));
      } else if (key === 'finalizers') {
        const oldList = old as string[];
        const list = value as string[];
        patch[key] = list.filter((element) => !oldList.includes(element));
        patch[`$deleteFromPrimitiveList/${key}`] = oldList.filter((element) => !list.includes(element));
        patch[`$setElementOrder/${key}`] = list;
      } else if (key === 'labels') {
        patch[key] = diff(old as Keyed, value as Keyed);
      } else if (keep.includes(key) || JSON.stringify(old) !== JSON.stringify(value)) {
        patch[key] = value;
      }
    }
    return patch;
  }

  it('a strategic merge patch of equal content, or without content, changes nothing', () => {
    fc.assert(
      fc.property(object, (o) => {
        expect(patched(o, o)).toEqual(o);
        expect(patched(o, {})).toEqual(o);
        expect(patched(o, diff(o, o))).toEqual(o);
      }),
    );
  });
  it('a patch computed by kubectl turns one object into the other, including the order, and is idempotent', () => {
    fc.assert(
      fc.property(object, object, (from, to) => {
        const patch = diff(from, to);
        const result = patched(from, patch);
        expect(result).toEqual(to);
        expect(patched(result, patch)).toEqual(to);
      }),
    );
  });
  it('a strategic merge patch keeps elements that only the object has, in their order', () => {
    fc.assert(
      fc.property(
        fc.shuffledSubarray(['a', 'b', 's1', 's2', 'c']),
        fc.shuffledSubarray(['a', 'b', 'c', 'n']),
        (live, order) => {
          const result = patched(
            { containers: named(...live) },
            { '$setElementOrder/containers': named(...order), containers: named(...order) },
          )['containers'] as { name: string }[];
          const names = result.map((element) => element.name);
          expect([...names].sort()).toEqual([...new Set([...live, ...order])].sort());
          expect(names.filter((name) => order.includes(name))).toEqual(order);
          const others = live.filter((name) => !order.includes(name));
          expect(names.filter((name) => others.includes(name))).toEqual(others);
        },
      ),
    );
  });
});

describe('a strategic merge patch that repeats an element', () => {
  const count = 3000;
  const list = (element: (index: number) => JsonObject): JsonObject[] =>
    Array.from({ length: count }, (_, index) => element(index));
  const full = {
    name: 'a',
    ports: list((port) => ({ port })),
    finalizers: list(() => ({})).map((_, index) => index),
    env: Object.fromEntries(list(() => ({})).map((_, index) => [`e${index}`, '1'])),
  };

  it.each<[string, JsonObject, (index: number) => JsonObject]>([
    ['with a merged list', { containers: [] }, () => ({ ports: [{ port: 1 }] })],
    ['with the order of a list', { containers: [] }, () => ({ '$setElementOrder/ports': [{ port: 1 }] })],
    ['with a list of scalars', { containers: [] }, () => ({ '$deleteFromPrimitiveList/finalizers': [-1] })],
    ['with many fields', { containers: [] }, (index) => ({ [`f${index}`]: '1' })],
    ['with a map', { containers: [] }, (index) => ({ env: { [`f${index}`]: '1' } })],
    ['and the element exists', { containers: [full] }, () => ({ ports: [{ port: 1 }] })],
  ])('a strategic merge patch that repeats an element too often is rejected within 1 s: %s', (_, object, more) => {
    const containers = [full as JsonObject, ...list((index) => ({ name: 'a', ...more(index) }))];
    const refuse = () =>
      expect(() => patched(object, { containers })).toThrow(/the patch merges more than 200000 fields/);
    expect(cpuMillisOf(refuse)).toBeLessThan(1000);
  });

  it('a strategic merge patch may contain an element 50 times with different content', () => {
    const containers = [full, ...list((port) => ({ name: 'a', ports: [{ port, x: port }] })).slice(0, 50)];
    const [container] = patched({ containers: [] }, { containers })['containers'] as { ports: JsonObject[] }[];
    expect(container?.ports.filter(({ x }) => x !== undefined)).toHaveLength(50);
    expect(container?.ports).toHaveLength(count);
  });

  it('a strategic merge patch may contain 250,000 different elements', () => {
    const many = { finalizers: Array.from({ length: 250_000 }, (_, index) => index) };
    expect(patched(many, many)).toEqual(many);
  });
});
