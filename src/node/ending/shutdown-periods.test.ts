import { expect, it, test } from 'vitest';
import type { Pod } from '../../api/generated/types.ts';
import { groupOf, parsePeriods, periodsOf } from './shutdown-periods.ts';

const podOf = (priority?: number): Pod => ({
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' } },
  spec: { containers: [], ...(priority === undefined ? {} : { priority }) },
});
const OPTION = '--shutdown-grace-period-by-pod-priority';

it('periods by priority, the lowest first, whatever order they are given in', () => {
  expect(parsePeriods(OPTION, '100000=10, 2000000000=5,0=30,-5=0')).toEqual([
    { priority: -5, seconds: 0 },
    { priority: 0, seconds: 30 },
    { priority: 100000, seconds: 10 },
    { priority: 2000000000, seconds: 5 },
  ]);
});

test.each([
  ['0=10s', '"0=10s" is not PRIORITY=SECONDS'],
  ['0=-1', '"0=-1" is not PRIORITY=SECONDS'],
  ['', '"" is not PRIORITY=SECONDS'],
  ['0=1,', '"" is not PRIORITY=SECONDS'],
  ['0=1,0=2', 'the priority 0 stands there twice'],
])('refuses %j', (text, message) => {
  expect(() => parsePeriods(OPTION, text)).toThrow(`${OPTION}: ${message}`);
});

test.each([
  [undefined, 0],
  [-1, 0],
  [99_999, 0],
  [100_000, 1],
  [2_000_000_000, 2],
])('a Pod of priority %j is in group %j', (priority, group) => {
  const periods = parsePeriods(OPTION, '0=30,100000=10,2000000000=5');
  expect(groupOf(podOf(priority), periods)).toBe(group);
});

it('two periods: critical Pods have the last part', () => {
  const periods = periodsOf(30, 10);
  expect(periods.map(({ seconds }) => seconds)).toEqual([20, 10]);
  expect([-7, undefined, 1_999_999_999, 2_000_001_000].map((own) => groupOf(podOf(own), periods))).toEqual([
    0, 0, 0, 1,
  ]);
});
