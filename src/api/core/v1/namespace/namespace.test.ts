import { describe, expect, it } from 'vitest';
import { fieldErrorText } from '../../../../machinery/field-error.ts';
import type { Namespace } from '../../../generated/types.ts';
import { created, headings, row, updated } from '../../../testing.ts';
import { namespaceKind } from './index.ts';

describe('a new Namespace', () => {
  it('a new Namespace gets the finalizer, the phase and the label with its name', () => {
    const { object, errors } = created(namespaceKind, {
      spec: { finalizers: ['x.io/y'] },
      status: { phase: 'Terminating' },
    });
    expect(errors).toEqual([]);
    expect(object.spec).toEqual({ finalizers: ['x.io/y', 'kubernetes'] });
    expect(object.status).toEqual({ phase: 'Active' });
    expect(object.metadata.labels).toEqual({ 'kubernetes.io/metadata.name': 'a' });
  });
  it('a new Namespace gets the finalizer only once, and no label before its name is generated', () => {
    expect(created(namespaceKind, { spec: { finalizers: ['kubernetes'] } }).object.spec).toEqual({
      finalizers: ['kubernetes'],
    });
    const unnamed = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: '', generateName: 'a-' } };
    namespaceKind.defaults?.(unnamed);
    expect(unnamed.metadata).toEqual({ name: '', generateName: 'a-' });
  });
  it('a finalizer of a Namespace must be a qualified name', () => {
    expect(created(namespaceKind, { spec: { finalizers: ['orphan', 'a/b/c'] } }).errors).toEqual([
      expect.stringMatching(/^spec.finalizers: Invalid value: "a\/b\/c": a qualified name must consist of/),
    ]);
  });
  it('a new Namespace must have a valid name and valid finalizers', () => {
    expect(created(namespaceKind, { metadata: { name: 'a.b' }, spec: { finalizers: ['odd'] } }).errors).toEqual([
      'metadata.name: Invalid value: "a.b": must not contain dots',
      'spec.finalizers: Invalid value: "odd": name is neither a standard finalizer name nor is it fully qualified',
    ]);
  });
});

it('an update of a Namespace keeps its finalizers, status and the label with its name', () => {
  const { object, errors } = updated(
    namespaceKind,
    {},
    { metadata: { labels: { x: 'y' } }, spec: { finalizers: [] }, status: { phase: 'Odd' } },
  );
  expect(errors).toEqual([]);
  expect(object.spec?.finalizers).toEqual(['kubernetes']);
  expect(object.status).toEqual({ phase: 'Active' });
  expect(object.metadata.labels).toEqual({ x: 'y', 'kubernetes.io/metadata.name': 'a' });
});

describe('deletion of a Namespace', () => {
  const live: Namespace = { ...created(namespaceKind, {}).object };
  const stored = (extra: Partial<Namespace['metadata']>): Namespace => ({
    ...live,
    metadata: { ...live.metadata, resourceVersion: '1', ...extra },
  });
  it('the deletion of a Namespace waits for the finalizers in its spec', () => {
    expect(namespaceKind.deletion?.(live, {}, { now: 0 })).toEqual({ now: false, graceSeconds: 0 });
    expect(namespaceKind.deletion?.({ ...live, spec: { finalizers: [] } }, {}, { now: 0 })).toEqual({ now: true });
  });
  it('the finalize subresource replaces only the spec', () => {
    const old = stored({ deletionTimestamp: 't' });
    const { apply, validate } = namespaceKind.subresources['finalize'] ?? {};
    const result = apply?.(old, { ...old, spec: {}, status: { phase: 'Odd' } } as Namespace, { now: 0 });
    expect(result).toEqual({ ...old, spec: {} });
    expect(validate?.(result as Namespace, old)).toEqual([]);
  });
  it.each<[string, string | undefined, string, string[]]>([
    ['a Namespace that is not deleted may be Active', undefined, 'Active', []],
    [
      'a Namespace that is not deleted may not be Terminating',
      undefined,
      'Terminating',
      ['status.Phase: Invalid value: "Terminating": may only be \'Active\' if `deletionTimestamp` is empty'],
    ],
    ['a deleted Namespace may be Terminating', 't', 'Terminating', []],
    [
      'a deleted Namespace may not be Active',
      't',
      'Active',
      ['status.Phase: Invalid value: "Active": may only be \'Terminating\' if `deletionTimestamp` is not empty'],
    ],
  ])('%s', (_, deletionTimestamp, phase, expected) => {
    const old = stored({ deletionTimestamp });
    const errors = namespaceKind.subresources['status']?.validate?.({ ...old, status: { phase } }, old) ?? [];
    expect(errors.map(fieldErrorText)).toEqual(expected);
  });
});

it('the table of Namespaces shows phase and age', () => {
  expect(headings(namespaceKind).all).toBe('NAME | STATUS | AGE');
  expect(
    row(namespaceKind, { metadata: { creationTimestamp: '2026-01-30T11:00:00Z' }, status: { phase: 'Active' } }),
  ).toEqual(['a', 'Active', '25h']);
});
