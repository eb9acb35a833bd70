import { expect, it } from 'vitest';
import { created, headings, row, updated } from '../../../testing.ts';
import { leaseKind } from './index.ts';

it('judges durations and transitions', () => {
  expect(created(leaseKind, { spec: { leaseDurationSeconds: 15, leaseTransitions: 0 } }).errors).toEqual([]);
  const bad = [
    'spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0',
    'spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0',
  ];
  const spec = { leaseDurationSeconds: 0, leaseTransitions: -1 };
  expect(created(leaseKind, { spec }).errors).toEqual(bad);
  expect(updated(leaseKind, {}, { spec }).errors).toEqual(bad);
});

it('drops what belongs to coordinated leader election', () => {
  const spec = { holderIdentity: 'h', strategy: 'OldestEmulationVersion', preferredHolder: 'p' };
  expect(created(leaseKind, { spec }).object.spec).toEqual({ holderIdentity: 'h' });
});

it('table', () => {
  expect(headings(leaseKind).all).toBe('NAME | HOLDER | AGE');
  expect(row(leaseKind, { spec: { holderIdentity: 'h' } })).toEqual(['a', 'h', '<unknown>']);
});
