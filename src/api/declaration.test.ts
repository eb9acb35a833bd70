import { expect, test } from 'vitest';
import { fieldErrorText } from '../machinery/field-error.ts';
import type { KubeObject } from '../machinery/meta.ts';
import { kind } from './declaration.ts';
import { at, immutable, nonNegative, onCreate, oneOf } from './rules.ts';
import { ageColumn, column, nameColumn } from './table.ts';

interface Widget extends KubeObject {
  spec?: { size?: number; color?: string };
  status?: { phase?: string };
}

const widget = kind<Widget>('example.com/v1', 'Policy', {
  rules: [at('spec.size', nonNegative), oneOf('spec.color', ['red', 'blue']), immutable('spec.color')],
  status: { initial: () => ({ phase: 'New' }), rules: [at('status.phase', () => ['is wrong'])] },
  columns: [nameColumn, column('Size', 'The size.', ({ spec }) => spec?.size ?? 0), ageColumn],
});
const object = (spec: Widget['spec'], more: Partial<Widget['metadata']> = {}): Widget => ({
  apiVersion: 'example.com/v1',
  kind: 'Policy',
  metadata: { name: 'a', namespace: 'default', resourceVersion: '1', ...more },
  spec,
});
const context = { now: Date.parse('2026-01-01T00:01:00Z') };

test('a declaration derives the names of the resource from the kind', () => {
  expect(widget).toMatchObject({
    group: 'example.com',
    version: 'v1',
    plural: 'policies',
    singular: 'policy',
    namespaced: true,
  });
  expect(kind('v1', 'Widget', { scope: 'Cluster', columns: [] })).toMatchObject({
    group: '',
    version: 'v1',
    plural: 'widgets',
    namespaced: false,
  });
  expect(kind('v1', 'RuntimeClass', { columns: [] }).plural).toBe('runtimeclasses');
});

test('a new object is validated by the rules for metadata and those of the kind', () => {
  const errors = widget.validateCreate(object({ size: -1, color: 'green' }, { name: 'A' }));
  expect(errors.map(({ field }) => field)).toEqual(['metadata.name', 'spec.size', 'spec.color']);
  expect(widget.validateCreate(object({ size: 0, color: 'red' }))).toEqual([]);
});

test('an update is validated by the rules for changed metadata and those of the kind', () => {
  const errors = widget.validateUpdate(object({ color: 'blue' }, { uid: 'b' }), object({ color: 'red' }, { uid: 'a' }));
  expect(errors.map(fieldErrorText)).toEqual([
    'metadata.uid: Invalid value: "b": field is immutable',
    'spec.color: Invalid value: "blue": field is immutable',
  ]);
});

test('only the status subresource changes a declared status', () => {
  const created = { ...object({}), status: { phase: 'Hacked' } };
  widget.prepareForCreate?.(created, context);
  expect(created.status).toEqual({ phase: 'New' });
  const updated = { ...object({}), status: { phase: 'Hacked' } };
  widget.prepareForUpdate?.(updated, { ...object({}), status: { phase: 'Old' } }, context);
  expect(updated.status).toEqual({ phase: 'Old' });
  const status = widget.subresources['status'];
  expect(
    status?.apply?.(object({ size: 1 }), { ...object({ size: 2 }), status: { phase: 'Ready' } } as Widget, context),
  ).toMatchObject({ spec: { size: 1 }, status: { phase: 'Ready' } });
  expect(status?.validate?.({ ...object({}), status: { phase: 'x' } }, object({})).map(({ field }) => field)).toEqual([
    'status.phase',
  ]);
});

test('the cells of a row are in the order of the columns', () => {
  const row = widget.row(object({ size: 3 }, { creationTimestamp: '2026-01-01T00:00:00Z' }), context);
  expect(widget.columns.map(({ name }) => name)).toEqual(['Name', 'Size', 'Age']);
  expect(row).toEqual(['a', 3, '60s']);
});

test('onCreate applies a rule only to new objects', () => {
  const rule = onCreate(at('spec.size', () => ['is wrong']) as (widget: Widget) => never[]);
  expect(rule(object({ size: 1 }))).toHaveLength(1);
  expect(rule(object({ size: 1 }), object({ size: 1 }))).toEqual([]);
});
