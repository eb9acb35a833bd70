import { expect, it } from 'vitest';
import type { StorageClass } from '../../../generated/types.ts';
import { created, headings, row, updated } from '../../../testing.ts';
import { defaultClassName, storageClassKind } from './index.ts';

const isDefault = { 'storageclass.kubernetes.io/is-default-class': 'true' };

it('a new StorageClass gets its defaults', () => {
  const { object, errors } = created(storageClassKind, { provisioner: 'example.com/x' });
  expect(errors).toEqual([]);
  expect(object).toMatchObject({ reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate' });
});

it('a StorageClass must have a provisioner and known policies', () => {
  expect(
    created(storageClassKind, { provisioner: '', reclaimPolicy: 'Burn', volumeBindingMode: 'Odd' }).errors,
  ).toEqual([
    'provisioner: Required value',
    'reclaimPolicy: Unsupported value: "Burn": supported values: "Delete", "Retain"',
    'volumeBindingMode: Unsupported value: "Odd": supported values: "Immediate", "WaitForFirstConsumer"',
  ]);
});

it('a provisioner must be a qualified name, whose letters may be of upper case', () => {
  expect(created(storageClassKind, { provisioner: 'Example.com/X' }).errors).toEqual([]);
  expect(created(storageClassKind, { provisioner: 'a b' }).errors).toEqual([
    expect.stringMatching(/^provisioner: Invalid value: "a b": name part must consist of/),
  ]);
});

it('an update of a StorageClass may write it unchanged', () => {
  const body = { provisioner: 'a.b/c', parameters: { a: 'b' } };
  expect(updated(storageClassKind, body, body).errors).toEqual([]);
});

it('a StorageClass is immutable', () => {
  const change = { provisioner: 'b.c/d', reclaimPolicy: 'Retain', parameters: { a: 'b' } };
  expect(updated(storageClassKind, { provisioner: 'a.b/c' }, change).errors).toEqual([
    'parameters: Forbidden: updates to parameters are forbidden.',
    'provisioner: Forbidden: updates to provisioner are forbidden.',
    'reclaimPolicy: Invalid value: "Retain": field is immutable',
  ]);
});

it('the table of StorageClasses marks the default class', () => {
  expect(headings(storageClassKind).all).toBe(
    'NAME | PROVISIONER | RECLAIMPOLICY | VOLUMEBINDINGMODE | ALLOWVOLUMEEXPANSION | AGE',
  );
  const metadata = { annotations: isDefault, creationTimestamp: '2026-01-31T11:59:00Z' };
  expect(row(storageClassKind, { metadata, provisioner: 'p' })).toEqual([
    'a (default)',
    'p',
    'Delete',
    'Immediate',
    'false',
    '60s',
  ]);
});

it('the newest of several default StorageClasses is used', () => {
  const of = (name: string, creationTimestamp: string, annotations: Record<string, string>): StorageClass => ({
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name, creationTimestamp, annotations },
    provisioner: 'p',
  });
  const old = of('old', '2026-01-01T00:00:00Z', isDefault);
  expect(
    defaultClassName([old, of('new', '2026-01-02T00:00:00Z', isDefault), of('none', '2026-01-03T00:00:00Z', {})]),
  ).toBe('new');
  expect(defaultClassName([])).toBeUndefined();
  const together = ['b', 'a-b', 'a.b', 'a'].map((name) => of(name, '2026-01-02T00:00:00Z', isDefault));
  expect(defaultClassName([old, ...together])).toBe('a');
  expect(defaultClassName([...together.reverse(), old])).toBe('a');
});

it('the default StorageClass is found in linear time', () => {
  let reads = 0;
  const classes = Array.from({ length: 10_000 }, (_, index) => ({
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    provisioner: 'p',
    metadata: {
      name: `c${index}`,
      annotations: isDefault,
      get creationTimestamp() {
        reads++;
        return '2026-01-01T00:00:00Z';
      },
    },
  })) as unknown as StorageClass[];
  expect(defaultClassName(classes)).toBe('c0');
  expect(reads).toBeLessThan(3 * classes.length);
});
