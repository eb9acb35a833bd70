import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JsonObject, JsonValue } from '../json-value.ts';
import type { KubeObject, ManagedFieldsEntry } from '../meta.ts';
import type { ApiError } from '../status.ts';
import { compare } from './comparison.ts';
import { difference, type FieldSet, intersection, pathsOf, union } from './field-set.ts';
import { applyConfig, entriesAfterUpdate, type FieldWriter, firstEntries, givenEntries } from './managed-fields.ts';
import { type FieldType, fieldSetOf, merge, removeFields, repeatedItem } from './typed-value.ts';

const atomic: FieldType = { kind: 'atomic' };
const struct = (fields: Record<string, FieldType>): FieldType => ({
  kind: 'struct',
  field: (name) => (Object.hasOwn(fields, name) ? fields[name] : undefined),
});
const port = struct({ port: atomic, protocol: atomic, name: atomic });
const item = struct({
  name: atomic,
  image: atomic,
  command: atomic,
  ports: { kind: 'listMap', keys: ['port', 'protocol'], defaults: { protocol: 'TCP' }, items: port },
});
const labels: FieldType = { kind: 'map', values: atomic };
const type = struct({
  apiVersion: atomic,
  kind: atomic,
  metadata: struct({ name: atomic, labels, annotations: labels, finalizers: { kind: 'set' } }),
  spec: struct({
    replicas: atomic,
    items: { kind: 'listMap', keys: ['name'], defaults: {}, items: item },
    empty: struct({ a: atomic }),
  }),
  status: struct({ phase: atomic }),
});

const thing = (spec: JsonObject, metadata: JsonObject = {}): JsonObject => ({
  apiVersion: 'v1',
  kind: 'Thing',
  metadata: { name: 'a', ...metadata },
  spec,
});
const NOW = '2026-01-01T00:00:00Z';
const writer = (manager: string, more: Partial<FieldWriter> = {}): FieldWriter => ({
  manager,
  apiVersion: 'v1',
  subresource: undefined,
  time: NOW,
  ...more,
});

const finish =
  <A extends unknown[], T>(begin: (...args: A) => Generator<void, T>) =>
  (...args: A): T => {
    const steps = begin(...args);
    for (;;) {
      const { done, value } = steps.next();
      if (done) return value;
    }
  };

/** The registry stores the entries in metadata.managedFields of the object. */
interface Kept {
  live: KubeObject | undefined;
  entries: ManagedFieldsEntry[];
}
const nothing: Kept = { live: undefined, entries: [] };
const apply = ({ live, entries }: Kept, by: string, config: JsonObject, force = false, time = NOW): Kept => {
  const result = finish(applyConfig)(live, entries, type, {
    config,
    writer: writer(by, { time }),
    force,
    ignored: { 'f:status': {} },
  });
  return { live: result.object as unknown as KubeObject, entries: result.entries };
};
const write = ({ live, entries }: Kept, by: string, object: JsonObject, more: Partial<FieldWriter> = {}): Kept => {
  const now = object as unknown as KubeObject;
  return { live: now, entries: finish(entriesAfterUpdate)(entries, live as KubeObject, now, type, writer(by, more)) };
};
const ownersOf = ({ entries }: Kept): Record<string, unknown> =>
  Object.fromEntries(entries.map(({ manager, operation, fieldsV1 }) => [`${manager} ${operation}`, fieldsV1]));
const specOf = ({ live }: Kept): unknown => (live as unknown as JsonObject | undefined)?.['spec'];
const refusal = (run: () => unknown): ApiError => {
  try {
    run();
  } catch (error) {
    return error as ApiError;
  }
  throw new Error('nothing was refused');
};

describe('sets of fields of a value', () => {
  it('fieldSetOf() returns fields in the format of managedFields', () => {
    const value = thing(
      { replicas: 1, items: [{ name: 'x', command: ['a', 'b'], ports: [{ port: 80 }] }], empty: {} },
      { labels: { app: 'web' }, finalizers: ['f'] },
    );
    expect(fieldSetOf(value, type)).toEqual({
      'f:apiVersion': {},
      'f:kind': {},
      'f:metadata': { 'f:name': {}, 'f:labels': { 'f:app': {} }, 'f:finalizers': { 'v:"f"': {} } },
      'f:spec': {
        'f:replicas': {},
        'f:empty': {},
        'f:items': {
          'k:{"name":"x"}': {
            '.': {},
            'f:name': {},
            'f:command': {},
            'f:ports': { 'k:{"port":80,"protocol":"TCP"}': { '.': {}, 'f:port': {} } },
          },
        },
      },
    });
  });

  it('fieldSetOf() ignores unknown fields', () => {
    expect(fieldSetOf({ other: 1 }, type)).toBeUndefined();
  });

  it('repeatedItem() reports a key that occurs twice in a list', () => {
    const twice = (items: JsonValue[]) => repeatedItem(thing({ items }), type);
    expect(twice([{ name: 'x' }, { name: 'y' }])).toBeUndefined();
    expect(twice([{ name: 'x' }, { name: 'x' }])).toBe('.spec.items: duplicate entries for key [name="x"]');
    expect(twice([{ name: 'x', ports: [{ port: 1 }, { port: 1, protocol: 'TCP' }] }])).toBe(
      '.spec.items[name="x"].ports: duplicate entries for key [port=1,protocol="TCP"]',
    );
  });
});

describe('comparison and merge of two values', () => {
  it('compare() reports added, modified and removed fields', () => {
    const old = thing({ replicas: 1, items: [{ name: 'x', image: 'a' }, { name: 'gone' }] }, { labels: { a: '1' } });
    const now = thing({
      replicas: 2,
      items: [
        { name: 'new', image: 'n' },
        { name: 'x', image: 'a' },
      ],
    });
    const { added, modified, removed } = compare(old, now, type);
    expect([...pathsOf(modified)]).toEqual(['.spec.replicas']);
    expect([...pathsOf(added)]).toEqual([
      '.spec.items[name="new"]',
      '.spec.items[name="new"].image',
      '.spec.items[name="new"].name',
    ]);
    expect([...pathsOf(removed)]).toEqual([
      '.metadata.labels',
      '.metadata.labels.a',
      '.spec.items[name="gone"]',
      '.spec.items[name="gone"].name',
    ]);
  });

  it.each<[string, string[], string[], string[]]>([
    ['the order of the config', ['a', 'b'], ['b', 'a'], ['b', 'a']],
    [
      'an element that only the object has stays in front of the next element',
      ['x', 'a', 'y', 'b'],
      ['a', 'b'],
      ['x', 'a', 'y', 'b'],
    ],
    ['a new element is inserted at its position in the config', ['a', 'c'], ['a', 'b', 'c'], ['a', 'b', 'c']],
    ['an element that only the object has stays at the end', ['a', 'z'], ['a', 'b'], ['a', 'z', 'b']],
    ['no element is lost if the orders conflict', ['a', 'x', 'b', 'y'], ['b', 'a'], ['b', 'a', 'x', 'y']],
    [
      'an element that comes earlier in the config does not move others',
      ['a', 'b', 'x', 'c'],
      ['b', 'a', 'c'],
      ['b', 'a', 'x', 'c'],
    ],
  ])('merge() merges lists by their keys: %s', (_, live, config, expected) => {
    const list = (names: string[]) => thing({ items: names.map((name) => ({ name })) });
    const merged = merge(list(live), list(config), type) as { spec: { items: { name: string }[] } };
    expect(merged.spec.items.map(({ name }) => name)).toEqual(expected);
  });

  it('removeFields() reverts merge()', () => {
    const base = thing({ items: [{ name: 'x', image: 'a' }] });
    const more = thing({ replicas: 1, items: [{ name: 'y' }] }, { labels: { a: '1' } });
    const merged = merge(base, more, type);
    const { added } = compare(base, merged, type);
    expect(removeFields(merged, added, type)).toEqual(base);
  });
});

describe('server-side apply', () => {
  const app = (image: string, more: JsonObject = {}) => thing({ items: [{ name: 'app', image, ...more }] });

  it('the first apply creates the object and owns the fields of the config', () => {
    const made = apply(nothing, 'me', app('a'));
    expect(made.live).toEqual(app('a'));
    expect(ownersOf(made)).toEqual({
      'me Apply': { 'f:spec': { 'f:items': { 'k:{"name":"app"}': { '.': {}, 'f:image': {}, 'f:name': {} } } } },
    });
  });

  it('an apply of the same config changes nothing, not even the time', () => {
    const made = apply(nothing, 'me', app('a'));
    expect(apply(made, 'me', app('a'), false, '2027-01-01T00:00:00Z')).toEqual(made);
  });

  it('an apply removes fields that it applied before and that have no other owner', () => {
    const made = apply(
      nothing,
      'me',
      thing({ replicas: 1, items: [{ name: 'x' }, { name: 'y' }] }, { labels: { a: '1' } }),
    );
    const defaulted = thing({ replicas: 1, items: [{ name: 'x', image: 'd' }, { name: 'y' }] }, { labels: { a: '1' } });
    const again = apply({ ...made, live: defaulted as unknown as KubeObject }, 'me', thing({ items: [{ name: 'y' }] }));
    expect(again.live).toEqual(thing({ items: [{ name: 'y' }] }));
  });

  it('an apply keeps fields that it never applied', () => {
    const made = apply(nothing, 'me', app('a'));
    const other = write(made, 'other', thing({ replicas: 3, items: [{ name: 'app', image: 'a' }] }));
    expect(specOf(apply(other, 'me', app('b')))).toEqual({ replicas: 3, items: [{ name: 'app', image: 'b' }] });
  });

  it('an apply keeps fields that it omits if they have another owner', () => {
    const both = apply(apply(nothing, 'me', app('a')), 'you', app('a'));
    const mine = apply(both, 'me', thing({}));
    expect(specOf(mine)).toEqual({ items: [{ name: 'app', image: 'a' }] });
    expect(ownersOf(mine)['me Apply']).toEqual({ 'f:spec': {} });
    expect(specOf(apply(mine, 'you', thing({})))).toEqual({});
  });

  it("an apply that changes another owner's field is a conflict", () => {
    const made = apply(nothing, 'me', app('a'));
    const { status } = refusal(() => apply(made, 'you', app('b')));
    expect(status).toMatchObject({
      code: 409,
      reason: 'Conflict',
      message: 'Apply failed with 1 conflict: conflict with "me": .spec.items[name="app"].image',
      details: {
        causes: [
          { reason: 'FieldManagerConflict', message: 'conflict with "me"', field: '.spec.items[name="app"].image' },
        ],
      },
    });
  });

  it('a conflict lists all fields with their owners, and the time of updates', () => {
    const made = apply(nothing, 'me', thing({ replicas: 1 }, { labels: { a: '1' } }));
    const changed = write(made, 'editor', thing({ replicas: 1 }, { labels: { a: '1', b: '2' } }), {
      subresource: 'status',
    });
    const run = () => apply(changed, 'you', thing({ replicas: 2 }, { labels: { a: '2', b: '3' } }));
    expect(refusal(run).message).toBe(
      [
        'Apply failed with 3 conflicts: conflicts with "editor" with subresource "status" using v1 at 2026-01-01T00:00:00Z:',
        '- .metadata.labels.b',
        'conflicts with "me":',
        '- .metadata.labels.a',
        '- .spec.replicas',
      ].join('\n'),
    );
  });

  it('a forced apply takes ownership of conflicting fields', () => {
    const taken = apply(apply(nothing, 'me', app('a')), 'you', app('b'), true);
    expect(specOf(taken)).toEqual({ items: [{ name: 'app', image: 'b' }] });
    expect(ownersOf(taken)['me Apply']).toEqual({
      'f:spec': { 'f:items': { 'k:{"name":"app"}': { '.': {}, 'f:name': {} } } },
    });
  });

  it('an apply does not own the fields of another subresource', () => {
    const made = apply(nothing, 'me', { ...thing({ replicas: 1 }), status: { phase: 'x' } });
    expect(ownersOf(made)).toEqual({ 'me Apply': { 'f:spec': { 'f:replicas': {} } } });
  });
});

describe('update of an applied object', () => {
  it('an update takes ownership of the fields that it changes', () => {
    const made = apply(nothing, 'me', thing({ replicas: 1, items: [{ name: 'x', image: 'a' }] }));
    const changed = write(made, 'editor', thing({ replicas: 2, items: [{ name: 'x', image: 'a' }] }));
    expect(ownersOf(changed)).toEqual({
      'me Apply': { 'f:spec': { 'f:items': { 'k:{"name":"x"}': { '.': {}, 'f:image': {}, 'f:name': {} } } } },
      'editor Update': { 'f:spec': { 'f:replicas': {} } },
    });
    expect(refusal(() => apply(changed, 'me', thing({ replicas: 1 }))).code).toBe(409);
  });

  it('a field that an update removes has no owner', () => {
    const made = apply(nothing, 'me', thing({ replicas: 1 }, { labels: { a: '1' } }));
    expect(ownersOf(write(made, 'editor', thing({ replicas: 1 })))).toEqual({
      'me Apply': { 'f:spec': { 'f:replicas': {} } },
    });
  });

  it('an update without changes does not change owners', () => {
    const made = apply(nothing, 'me', thing({ replicas: 1 }));
    const system = thing({ replicas: 1 }, { resourceVersion: '2', uid: 'u' });
    expect(write(made, 'editor', system).entries).toEqual(made.entries);
  });

  it('an update reduces the number of Update entries to ten, even if it changes nothing', () => {
    const made = apply(nothing, 'me', thing({ replicas: 1 }));
    const updaters = Array.from({ length: 12 }, (_, index) => ({
      manager: `m${index}`,
      operation: 'Update',
      apiVersion: 'v1',
      time: `2026-01-01T00:00:${10 + index}Z`,
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:spec': { [`f:a${index}`]: {} } },
    }));
    const { entries } = write({ ...made, entries: [...made.entries, ...updaters] }, 'editor', thing({ replicas: 1 }));
    expect(entries.map(({ manager }) => manager)).toEqual([
      'me',
      'ancient-changes',
      ...Array.from({ length: 9 }, (_, index) => `m${3 + index}`),
    ]);
  });
});

describe('an object that existed before the first apply', () => {
  const old = (annotations: JsonObject): KubeObject =>
    ({
      ...thing({ replicas: 1, items: [{ name: 'x', image: 'a' }] }, { annotations }),
      status: { phase: 'x' },
    }) as unknown as KubeObject;

  it('at the first apply, the existing fields of an object get the owner before-first-apply', () => {
    const [entry, ...others] = firstEntries(old({ note: 'n' }), type, 'v1', { 'f:status': {} });
    expect(others).toEqual([]);
    expect([entry?.manager, entry?.operation]).toEqual(['before-first-apply', 'Update']);
    expect([...pathsOf(entry?.fieldsV1 as FieldSet)]).toEqual([
      '.metadata.annotations.note',
      '.spec.replicas',
      '.spec.items[name="x"]',
      '.spec.items[name="x"].image',
      '.spec.items[name="x"].name',
    ]);
  });

  it('at the first apply, fields in the annotation of client-side apply get the owner kubectl-client-side-apply', () => {
    const key = 'kubectl.kubernetes.io/last-applied-configuration';
    const annotations = { [key]: JSON.stringify(thing({ items: [{ name: 'x' }, { name: 'gone' }] })) };
    const owners = ownersOf({
      live: undefined,
      entries: firstEntries(old(annotations), type, 'v1', { 'f:status': {} }),
    });
    expect(owners).toEqual({
      'kubectl-client-side-apply Update': {
        'f:metadata': { 'f:annotations': { [`f:${key}`]: {} } },
        'f:spec': { 'f:items': { 'k:{"name":"x"}': { '.': {}, 'f:name': {} } } },
      },
      'before-first-apply Update': {
        'f:spec': { 'f:replicas': {}, 'f:items': { 'k:{"name":"x"}': { 'f:image': {} } } },
      },
    });
  });

  it('at the first apply, client-side apply owns the defaults of its configuration that no other client has changed', () => {
    const key = 'kubectl.kubernetes.io/last-applied-configuration';
    const annotations = { [key]: JSON.stringify(thing({ items: [{ name: 'x' }] })) };
    const ownersWith = (replicas: number, image: string) => {
      const withDefaults = () => thing({ replicas, items: [{ name: 'x', image }] }) as unknown as JsonObject;
      const entries = firstEntries(old(annotations), type, 'v1', { 'f:status': {} }, withDefaults);
      return ownersOf({ live: undefined, entries });
    };
    expect(ownersWith(1, 'a')).not.toHaveProperty('before-first-apply Update');
    expect(ownersWith(3, 'b')['before-first-apply Update']).toEqual({
      'f:spec': { 'f:replicas': {}, 'f:items': { 'k:{"name":"x"}': { 'f:image': {} } } },
    });
  });
});

it('valid managedFields from a client are used', () => {
  const entry = { manager: 'm', operation: 'Apply', fieldsType: 'FieldsV1', fieldsV1: {} };
  expect(givenEntries([entry])).toEqual([entry]);
  expect(givenEntries([{}])).toEqual([]);
  expect(givenEntries([])).toBeUndefined();
  expect(givenEntries([{ ...entry, operation: 'Guess' }])).toBeUndefined();
});

describe('managedFields from a client with invalid sets of fields', () => {
  const given = (fieldsV1: unknown): unknown =>
    givenEntries([{ manager: 'm', operation: 'Apply', fieldsType: 'FieldsV1', fieldsV1: fieldsV1 as object }]);
  const nested = (levels: number): unknown => {
    let node: unknown = {};
    for (let level = 0; level < levels; level++) node = { 'f:a': node };
    return node;
  };

  it.each<[unknown]>([
    [{ 'f:status': null }],
    [{ 'f:status': { 'f:phase': 'Running' } }],
    [{ 'f:spec': { 'f:items': [] } }],
    [{ '.': null }],
    [{ status: {} }],
    [{ 'x:status': {} }],
    [{ 'f:items': { 'k:{"name"': {} } }],
    [{ 'f:items': { 'k:1': {} } }],
    [{ 'f:items': { 'v:': {} } }],
    [{ 'f:items': { 'i:one': {} } }],
  ])('managedFields with an invalid set are ignored: %j', (fieldsV1) => {
    expect(given(fieldsV1)).toBeUndefined();
  });

  it('managedFields with too many levels are ignored', () => {
    expect(given(nested(100_000))).toBeUndefined();
  });

  it.each<[unknown]>([
    [{}],
    [{ '.': {}, 'f:items': { '.': {}, 'k:{"name":"x"}': {}, 'v:"a:b"': {}, 'i:0': {}, 'f:': {} } }],
  ])('managedFields with a valid set are used: %j', (fieldsV1) => {
    expect(given(fieldsV1)).toMatchObject([{ fieldsV1 }]);
  });
});

describe('sets of fields', () => {
  const specs = fc
    .record(
      {
        replicas: fc.nat(3),
        items: fc.uniqueArray(
          fc.record(
            { name: fc.constantFrom('x', 'y', 'z'), image: fc.constantFrom('a', 'b') },
            { requiredKeys: ['name'] },
          ),
          { selector: ({ name }) => name, minLength: 1 },
        ),
      },
      { requiredKeys: [] },
    )
    .map((spec) => thing(spec as JsonObject));
  const paths = (set: FieldSet): string[] => [...pathsOf(set)].sort();

  it('union(), intersection() and difference() equal the same operations on sets of paths', () => {
    fc.assert(
      fc.property(specs, specs, (left, right) => {
        const [a, b] = [fieldSetOf(left, type), fieldSetOf(right, type)];
        const [inA, inB] = [new Set(paths(a)), new Set(paths(b))];
        expect(paths(union(a, b))).toEqual([...new Set([...inA, ...inB])].sort());
        expect(paths(intersection(a, b))).toEqual([...inA].filter((path) => inB.has(path)).sort());
        expect(paths(difference(a, b))).toEqual([...inA].filter((path) => !inB.has(path)).sort());
      }),
    );
  });

  it('after a forced apply the object contains the config, and a second apply changes nothing', () => {
    fc.assert(
      fc.property(specs, specs, specs, (first, second, third) => {
        const before = apply(apply(nothing, 'you', first), 'me', second, true);
        const after = apply(before, 'me', third, true);
        const { modified, removed } = compare(third, after.live as unknown as JsonObject, type);
        expect([modified, removed]).toEqual([undefined, undefined]);
        expect(apply(after, 'me', third)).toEqual(after);
      }),
    );
  });

  it('an applier that removes its fields does not change the fields of another applier', () => {
    fc.assert(
      fc.property(specs, specs, (mine, yours) => {
        const { live } = apply(apply(apply(nothing, 'you', yours), 'me', mine, true), 'me', thing({}), true);
        const { added } = compare(yours, live as unknown as JsonObject, type);
        expect(added).toBeUndefined();
      }),
    );
  });
});
