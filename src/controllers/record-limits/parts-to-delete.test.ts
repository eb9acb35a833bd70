import { expect, test } from 'vitest';
import { byAge, bySize, excessParts, type Part } from './parts-to-delete.ts';

const part = (name: string, lastAt: number, bytes = 100): Part => ({
  apiVersion: 'lifepod.io/v1',
  kind: 'PodRecord',
  metadata: { name },
  podUid: name.split('.')[0] ?? '',
  lastAt,
  bytes,
});
const names = (parts: readonly Part[]): string[] => parts.map(({ metadata }) => metadata.name);
const none = new Set<string>();

test('a record of a deleted Pod expires as a whole, the given time after its last step', () => {
  const parts = [part('a.0', 10), part('a.1', 50), part('b.0', 20)];
  expect(byAge(parts, none, 100, 119)).toEqual({ expired: [], nextAt: 120 });
  const { expired, nextAt } = byAge(parts, none, 100, 120);
  expect([names(expired), nextAt]).toEqual([['b.0'], 150]);
  expect(byAge(parts, none, 100, 150).nextAt).toBeUndefined();
});

test('the record of a Pod that exists does not expire', () => {
  expect(byAge([part('a.0', 10)], new Set(['a']), 100, 1_000_000)).toEqual({ expired: [], nextAt: undefined });
});

test('parts of deleted Pods are deleted first, the oldest first; the newest part of an existing Pod is kept', () => {
  // Parts of one record may have the same time. Their numbers are compared as numbers.
  const parts = [part('live.10', 1), part('live.9', 1), part('live.2', 1), part('gone.1', 9), part('gone.0', 9)];
  expect(names(bySize(parts, new Set(['live'])))).toEqual(['gone.0', 'gone.1', 'live.2', 'live.9']);
});

test('only as many parts are deleted as the excess requires', () => {
  const parts = [part('a.0', 1), part('b.0', 2), part('c.0', 3)];
  expect(names(excessParts(parts, none, 0))).toEqual([]);
  expect(names(excessParts(parts, none, 100))).toEqual(['a.0']);
  expect(names(excessParts(parts, none, 101))).toEqual(['a.0', 'b.0']);
  expect(names(excessParts(parts, none, 1000))).toEqual(['a.0', 'b.0', 'c.0']);
});
