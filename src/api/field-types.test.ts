import { expect, test } from 'vitest';
import type { FieldType } from '../machinery/field-ownership/typed-value.ts';
import { fieldTypeOf } from './field-types.ts';

function fieldOf(type: string, field: string): FieldType | undefined {
  const struct = fieldTypeOf(`io.k8s.api.core.v1.${type}`);
  return struct.kind === 'struct' ? struct.field(field) : undefined;
}

test('a list is merged by its listType, even if strategic merge patch merges it', () => {
  expect(fieldOf('PodStatus', 'hostIPs')).toEqual({ kind: 'atomic' });
  expect(fieldOf('PodStatus', 'podIPs')).toMatchObject({ kind: 'listMap', keys: ['ip'] });
  expect(fieldOf('PersistentVolumeClaimStatus', 'conditions')).toMatchObject({ kind: 'listMap', keys: ['type'] });
  expect(fieldOf('PodSpec', 'tolerations')).toEqual({ kind: 'atomic' });
  expect(fieldOf('NodeSpec', 'podCIDRs')).toEqual({ kind: 'set' });
});

test('an element that lacks a key has the default of the key', () => {
  const ports = { kind: 'listMap', keys: ['containerPort', 'protocol'], defaults: { protocol: 'TCP' } };
  expect(fieldOf('Container', 'ports')).toMatchObject(ports);
  expect(fieldOf('DeferContainer', 'ports')).toMatchObject(ports);
});

test('structs and maps are merged by field, unless upstream marks them as atomic', () => {
  expect(fieldOf('Service', 'spec')?.kind).toBe('struct');
  expect(fieldOf('ServiceSpec', 'selector')).toEqual({ kind: 'atomic' });
  expect(fieldOf('PodSpec', 'overhead')).toEqual({ kind: 'map', values: { kind: 'atomic' } });
  expect(fieldOf('PersistentVolumeClaimSpec', 'selector')).toEqual({ kind: 'atomic' });
});

test('an unknown field has no type, and an unknown type is an error', () => {
  expect(fieldOf('Pod', 'toString')).toBeUndefined();
  expect(() => fieldTypeOf('Pod')).toThrow('no facts about the type Pod');
});
