import { expect, test } from 'vitest';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { createEvictedPods } from './evicted-pods.ts';
import type { Threshold } from './thresholds.ts';

const thresholdOf = (hard: boolean): Threshold => ({
  signal: 'memory.available',
  value: { count: 1 },
  graceSeconds: 0,
  hard,
});
const [hard, soft] = [thresholdOf(true), thresholdOf(false)];

test('evictions wait for an evicted Pod until 30 s after its grace period, and hard ones only for Pods without grace', () => {
  const timers = createVirtualTimers();
  const pods = createEvictedPods(timers, () => false);
  expect([pods.mustWait(hard), pods.mustWait(soft)]).toEqual([false, false]);
  pods.add('a', 20, false);
  expect([pods.mustWait(hard), pods.mustWait(soft)]).toEqual([false, true]);
  timers.advance(49_999);
  expect(pods.mustWait(soft)).toBe(true);
  timers.advance(1);
  expect(pods.mustWait(soft)).toBe(false);
  pods.add('b', 0, false);
  expect([pods.mustWait(hard), pods.mustWait(soft)]).toEqual([true, true]);
  timers.advance(30_000);
  expect(pods.mustWait(hard)).toBe(false);
});

test('the wait for a Pod ends when it is cleared, and for a Pod that was evicted for the disk when its containers are removed', () => {
  const withContainers = new Set(['a', 'b']);
  const pods = createEvictedPods(createVirtualTimers(), (uid) => withContainers.has(uid));
  expect([pods.cleared('a'), pods.emptied('a')]).toEqual([false, false]);
  pods.add('a', 0, false);
  expect(pods.emptied('a')).toBe(false);
  expect([pods.cleared('a'), pods.cleared('a')]).toEqual([true, false]);
  pods.add('b', 0, true);
  expect([pods.cleared('b'), pods.emptied('b'), pods.mustWait(hard)]).toEqual([false, false, true]);
  withContainers.clear();
  expect([pods.emptied('b'), pods.mustWait(hard)]).toEqual([true, false]);
  pods.add('c', 0, true);
  expect([pods.emptied('c'), pods.mustWait(hard)]).toEqual([false, true]);
  expect([pods.cleared('c'), pods.mustWait(hard)]).toEqual([true, false]);
});
