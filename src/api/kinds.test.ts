import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../machinery/meta.ts';
import { createCatalog } from './catalog.ts';
import { typeFacts, typeOfKind } from './facts/facts.ts';
import { kinds } from './kinds.ts';
import { decode } from './schema.ts';

const catalog = createCatalog(kinds);

describe.each(kinds.map((kind) => [`${kind.group}/${kind.version} ${kind.kind}`, kind] as const))(
  'kind %s',
  (_, kind) => {
    it('the kind is found by its resource and by its name', () => {
      expect(catalog.find({ group: kind.group, version: kind.version, resource: kind.plural })).toBe(kind);
      expect(catalog.named(kind.group, kind.version, kind.kind)).toBe(kind);
    });
    it('the kind and the bodies of its subresources have facts about their types', () => {
      expect(typeFacts(kind.schema)?.name).toBe(kind.schema);
      for (const { bodyKind } of Object.values(kind.subresources)) {
        if (bodyKind !== undefined)
          expect(bodyKind.schema).toBe(typeOfKind(bodyKind.group, bodyKind.version, bodyKind.kind));
      }
    });
    it('the defaults of an object without content are idempotent, and its table row has one cell per column', () => {
      const object = decode(kind.schema, { apiVersion: 'v1', kind: kind.kind, metadata: { name: 'a' } })
        .value as unknown as KubeObject;
      kind.defaults?.(object);
      const once = structuredClone(object);
      kind.defaults?.(object);
      expect(object).toEqual(once);
      kind.prepareForCreate?.(object, { now: 0 });
      kind.validateCreate(object);
      if (!kind.createOnly) expect(kind.row(object, { now: 0 })).toHaveLength(kind.columns.length);
    });
    it('an update of an object without a status does not set the status', () => {
      const old = { apiVersion: 'v1', kind: kind.kind, metadata: { name: 'a' } };
      const object: KubeObject & { status?: object } = { ...structuredClone(old), status: { phase: 'Odd' } };
      kind.defaults?.(object, old);
      kind.prepareForUpdate?.(object, old, { now: 0 });
      if (kind.subresources['status'] !== undefined) expect(object.status).toBeUndefined();
    });
    it('the selectable fields of an object without content are strings', () => {
      const fields = kind.selectableFields?.({ apiVersion: '', kind: kind.kind, metadata: { name: '' } }) ?? {};
      for (const value of Object.values(fields)) expect(typeof value).toBe('string');
    });
    it('each indexed field is selectable', () => {
      const fields = kind.selectableFields?.({ apiVersion: '', kind: kind.kind, metadata: { name: '' } }) ?? {};
      for (const field of kind.indexedFields ?? []) expect(fields).toHaveProperty([field]);
    });
  },
);

it('an unknown kind is not found', () => {
  expect(catalog.find({ group: 'none.example', version: 'v1', resource: 'things' })).toBeUndefined();
  expect(catalog.named('', 'v1', 'pods')).toBeUndefined();
});
