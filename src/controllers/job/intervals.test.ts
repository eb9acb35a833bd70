import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  countCommon,
  firstMissing,
  formatIntervals,
  hasIndex,
  parseIntervals,
  total,
  withIndexes,
} from './intervals.ts';

test.each([
  ['', 10, ''],
  ['0', 10, '0'],
  ['0,1', 10, '0,1'],
  ['0,2-4,6', 10, '0,2-4,6'],
  ['0-2,3', 10, '0-3'],
  ['0,8-12', 10, '0,8,9'],
  ['3,12', 10, '3'],
  ['x,3,4-y,6', 10, '3,6'],
])('the text %j with %i completions is read as %j', (text, completions, expected) => {
  expect(formatIntervals(parseIntervals(text, completions))).toBe(expected);
});

const indexes = fc.uniqueArray(fc.nat(30), { maxLength: 20 });
const sorted = (list: Iterable<number>): number[] => [...list].sort((a, b) => a - b);

test('intervals behave as sets of numbers', () => {
  const property = fc.property(indexes, indexes, fc.nat(5), (some, others, count) => {
    const [a, b] = [withIndexes([], some), withIndexes([], others)];
    const both = new Set([...some, ...others]);
    const all = withIndexes(a, others);
    expect(parseIntervals(formatIntervals(all), 31)).toEqual(all);
    expect(total(all)).toBe(both.size);
    expect(countCommon(a, b)).toBe(some.filter((index) => others.includes(index)).length);
    const numbers = Array.from({ length: 31 }, (_, index) => index);
    expect(numbers.filter((index) => hasIndex(all, index))).toEqual(sorted(both));
    expect(firstMissing(all, count, 31)).toEqual(numbers.filter((index) => !both.has(index)).slice(0, count));
  });
  fc.assert(property);
});
