/** Tests the ownership of fields across versions. The version v2 of the kind has other names for the fields of v1. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { JsonObject } from '../json-value.ts';
import type { KubeObject, ManagedFieldsEntry } from '../meta.ts';
import { isApiError } from '../status.ts';
import { applyConfig, entriesAfterUpdate } from './managed-fields.ts';
import type { FieldType } from './typed-value.ts';
import type { ObjectVersion } from './versions.ts';

const FIELDS = { v1: ['a', 'b', 'c'], v2: ['x', 'y', 'z'] } as const;
type Version = keyof typeof FIELDS;
type Spec = Record<string, number>;

const atomic: FieldType = { kind: 'atomic' };
const struct = (fields: Record<string, FieldType>): FieldType => ({ kind: 'struct', field: (name) => fields[name] });
const typeOf = (version: Version): FieldType =>
  struct({ apiVersion: atomic, spec: struct(Object.fromEntries(FIELDS[version].map((name) => [name, atomic]))) });
const renamed = <T>(fields: Record<string, T>, from: Version, to: Version): Record<string, T> =>
  Object.fromEntries(
    FIELDS[from].flatMap((name, index) => {
      const value = fields[name];
      return value === undefined ? [] : [[FIELDS[to][index] as string, value]];
    }),
  );
const make = (version: Version, spec: Spec) => ({ apiVersion: version, spec }) as unknown as KubeObject;
const convert = (object: KubeObject, from: Version, to: Version): KubeObject =>
  make(to, renamed((object as unknown as { spec?: Spec }).spec ?? {}, from, to));
const versionFrom =
  (own: Version) =>
  (name: string): ObjectVersion | undefined => {
    if (name === own) return undefined;
    const version = name as Version;
    const from = (object: KubeObject) => convert(object, own, version);
    return { type: typeOf(version), from, back: (object) => convert(object, version, own) };
  };

function finish<T>(steps: Generator<void, T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

interface Write {
  manager: string;
  version: Version;
  operation: 'apply' | 'force' | 'update';
  spec: Spec;
}
interface State {
  object: KubeObject;
  entries: ManagedFieldsEntry[];
}

/** Returns the state after the write, with the object in v1. `spec` has the field names of v1. A conflict changes nothing. */
function write({ object, entries }: State, { manager, version, operation, spec }: Write): State {
  const old = convert(object, 'v1', version);
  const body = make(version, renamed(spec, 'v1', version) as Spec);
  const writer = { manager, apiVersion: version, subresource: undefined, time: '2026-01-01T00:00:00Z' };
  const versions = versionFrom(version);
  const type = typeOf(version);
  if (operation === 'update') {
    const after = finish(entriesAfterUpdate(entries, old, body, type, writer, versions));
    return { object: convert(body, version, 'v1'), entries: after };
  }
  const config = body as unknown as JsonObject;
  const request = { config, writer, force: operation === 'force', ignored: undefined, versions };
  try {
    const applied = finish(applyConfig(old, entries, type, request));
    return { object: convert(applied.object as unknown as KubeObject, version, 'v1'), entries: applied.entries };
  } catch (error) {
    if (!isApiError(error, 'Conflict')) throw error;
    return { object, entries };
  }
}

function summary(writes: readonly Write[]) {
  const { object, entries } = writes.reduce(write, { object: make('v1', {}), entries: [] });
  const owned = entries.flatMap(({ manager, operation, apiVersion, fieldsV1 }) => {
    const set = (fieldsV1 as { 'f:spec'?: Record<string, object> })['f:spec'] ?? {};
    const names = Object.fromEntries(Object.keys(set).map((name) => [name.slice(2), true]));
    return Object.keys(renamed(names, apiVersion as Version, 'v1')).map((name) => `${manager} ${operation} ${name}`);
  });
  return { object, owned: owned.sort() };
}

test('writes in two versions leave the object and the owners that the same writes in one version leave', () => {
  const value = fc.integer({ min: 1, max: 2 });
  const one: fc.Arbitrary<Write> = fc.record({
    manager: fc.constantFrom('one', 'two'),
    version: fc.constantFrom<Version>('v1', 'v2'),
    operation: fc.constantFrom('apply', 'force', 'update'),
    spec: fc.record({ a: value, b: value, c: value }, { requiredKeys: [] }) as fc.Arbitrary<Spec>,
  });
  fc.assert(
    fc.property(fc.array(one, { maxLength: 8 }), (writes) => {
      // Each spec has at least one field, because a manager could own an empty spec itself.
      const given = writes.filter(({ spec }) => Object.keys(spec).length > 0);
      expect(summary(given)).toEqual(summary(given.map((each) => ({ ...each, version: 'v1' }))));
    }),
  );
});
