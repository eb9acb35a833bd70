import { describe, expect, it } from 'vitest';
import { differences, isEmpty, sameValue } from './compare.ts';

it('undefined, null, and empty lists, maps and texts count as absent; 0 and false do not', () => {
  expect([undefined, null, '', [], {}].map(isEmpty)).toEqual([true, true, true, true, true]);
  expect([0, false, 'a', [0], { a: undefined }].map(isEmpty)).toEqual([false, false, false, false, false]);
});

describe('comparison of API values', () => {
  it.each<[string, unknown, unknown, boolean]>([
    ['equal texts', 'a', 'a', true],
    ['different texts', 'a', 'b', false],
    ['an absent value and an empty list', undefined, [], true],
    ['an empty map and a text', {}, 'a', false],
    ['a text and an empty map', 'a', {}, false],
    ['a text and a list', 'a', ['a'], false],
    ['a list and a text', ['a'], 'a', false],
    ['a list and a map of the same content', ['a'], { 0: 'a' }, false],
    ['lists of different lengths that differ by an absent value', ['a'], ['a', ''], false],
    ['maps that differ by an absent value', { a: 1 }, { a: 1, b: [] }, true],
    ['maps with another key', { a: 1 }, { b: 1 }, false],
    ['nested equal values', { a: [{ b: 1 }] }, { a: [{ b: 1 }] }, true],
    ['nested different values', { a: [{ b: 1 }] }, { a: [{ b: 2 }] }, false],
  ])('the comparison of %s has the right result', (_, a, b, expected) => {
    expect(sameValue(a, b)).toBe(expected);
  });
});

it.each<[string, unknown, unknown, string[]]>([
  ['no difference', { a: '' }, {}, []],
  ['a changed text', { a: 'x' }, { a: 'y' }, ['spec.a: "x" -> "y"']],
  ['a new and a removed field', { a: 1 }, { b: 2 }, ['spec.a: 1 -> unset', 'spec.b: unset -> 2']],
  ['a changed item of a list', { a: [{ b: 1 }, { b: 2 }] }, { a: [{ b: 1 }, { b: 3 }] }, ['spec.a[1].b: 2 -> 3']],
  ['a list that becomes a map', { a: [1] }, { a: { b: 1 } }, ['spec.a: [1] -> {"b":1}']],
  ['a text that becomes a map', { a: 'x' }, { a: { b: 1 } }, ['spec.a: "x" -> {"b":1}']],
])('the differences of two values with %s are listed', (_, old, now, expected) => {
  expect(differences(old, now, 'spec')).toEqual(expected);
});
