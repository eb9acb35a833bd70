import { expect, test } from 'vitest';
import type { PodRecord } from '../../../generated/types.ts';
import { areTwoLives, lastLife, livesIn } from './lives.ts';

const [one, two] = ['2026-01-31T12:00:00.000000Z', '2026-01-31T12:00:01.000000Z'];
const part = (number: number, created?: string): PodRecord => ({
  apiVersion: 'lifepod.io/v1',
  kind: 'PodRecord',
  metadata: { name: `u.${number}` },
  podName: 'web',
  podUID: 'u',
  transitions: [
    { key: 'x', type: 'Exited', at: one },
    ...(created === undefined ? [] : [{ key: 'Created', type: 'Created', at: created }]),
  ],
});
const names = (parts: readonly PodRecord[]): string => parts.map(({ metadata }) => metadata.name).join(' ');

test.each<[string, PodRecord[], string[]]>([
  ['no part', [], []],
  ['the parts of one Pod in any order', [part(10), part(2), part(0, one)], ['u.0 u.2 u.10']],
  ['a second creation', [part(0, one), part(1), part(2, two), part(3)], ['u.0 u.1', 'u.2 u.3']],
  ['a creation that is recorded again', [part(0, one), part(1, one)], ['u.0 u.1']],
  ['a first part that was deleted', [part(1), part(2, one)], ['u.1 u.2']],
])('the parts of a record with %s are grouped by life', (_, parts, lives) => {
  expect(livesIn(parts).map(names)).toEqual(lives);
  expect(names(lastLife(parts))).toBe(lives.at(-1) ?? '');
});

test('the same time in two forms is the time of one life', () => {
  expect(areTwoLives('2026-01-31T12:00:00Z', one)).toBe(false);
  expect(areTwoLives(one, two)).toBe(true);
  expect(areTwoLives(undefined, two)).toBe(false);
});
