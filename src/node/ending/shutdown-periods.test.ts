import { expect, it, test } from 'vitest';
import type { Pod } from '../../api/generated/types.ts';
import { groupOf, parsePeriods, periodsOf } from './shutdown-periods.ts';

const podOf = (priority?: number): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p' },
  spec: { containers: [], priority },
});
const OPTION = '--shutdown-grace-period-by-pod-priority';

it('parsePeriods sorts the periods by ascending priority', () => {
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
  ['0=1,0=2', 'the priority 0 is given twice'],
])('parsePeriods refuses "%s"', (text, message) => {
  expect(() => parsePeriods(OPTION, text)).toThrow(`${OPTION}: ${message}`);
});

test.each([
  [undefined, 0],
  [-1, 0],
  [99_999, 0],
  [100_000, 1],
  [2_000_000_000, 2],
])('a shutdown terminates a Pod of priority %s in group %s', (priority, group) => {
  const periods = parsePeriods(OPTION, '0=30,100000=10,2000000000=5');
  expect(groupOf(podOf(priority), periods)).toBe(group);
});

it('periodsOf reserves the last part of the time for critical Pods', () => {
  const periods = periodsOf(30, 10);
  expect(periods.map(({ seconds }) => seconds)).toEqual([20, 10]);
  expect([-7, undefined, 1_999_999_999, 2_000_001_000].map((own) => groupOf(podOf(own), periods))).toEqual([
    0, 0, 0, 1,
  ]);
});
