import { expect, it } from 'vitest';
import { created, headings, row, updated } from '../../../testing.ts';
import { leaseKind } from './index.ts';

it('a Lease with a duration of 0, or with a negative number of transitions, is invalid', () => {
  expect(created(leaseKind, { spec: { leaseDurationSeconds: 15, leaseTransitions: 0 } }).errors).toEqual([]);
  const bad = [
    'spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0',
    'spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0',
  ];
  const spec = { leaseDurationSeconds: 0, leaseTransitions: -1 };
  expect(created(leaseKind, { spec }).errors).toEqual(bad);
  expect(updated(leaseKind, {}, { spec }).errors).toEqual(bad);
});

it('the fields of coordinated leader election are dropped from a new Lease', () => {
  const spec = { holderIdentity: 'h', strategy: 'OldestEmulationVersion', preferredHolder: 'p' };
  expect(created(leaseKind, { spec }).object.spec).toEqual({ holderIdentity: 'h' });
});

it('the table of Leases shows the holder', () => {
  expect(headings(leaseKind).all).toBe('NAME | HOLDER | AGE');
  expect(row(leaseKind, { spec: { holderIdentity: 'h' } })).toEqual(['a', 'h', '<unknown>']);
});
