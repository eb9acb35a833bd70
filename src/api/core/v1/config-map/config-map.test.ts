import { expect, it } from 'vitest';
import type { ConfigMap } from '../../../generated/types.ts';
import { created, headings, row, updated } from '../../../testing.ts';
import { configMapKind } from './index.ts';

it.each<[Partial<ConfigMap>, string[]]>([
  [{ data: { 'a.txt': 'x' }, binaryData: { b: 'AA==' } }, []],
  [
    { data: { a: 'x' }, binaryData: { a: 'AA==' } },
    ['data[a]: Invalid value: "a": duplicate of key present in binaryData'],
  ],
  [{ data: { '..': 'x' } }, ['data[..]: Invalid value: "..": must not be \'..\'']],
  [{ data: { a: 'ü'.repeat(512 * 1024 + 1) } }, [': Too long: may not be more than 1048576 bytes']],
])('create %#', (map, expected) => {
  expect(created(configMapKind, map).errors).toEqual(expected);
});

it.each<[Partial<ConfigMap>, Partial<ConfigMap>, string[]]>([
  [{ data: { a: '1' } }, { data: { a: '2' }, immutable: true }, []],
  [{ immutable: true, data: { a: '1' } }, { immutable: true, data: { a: '1' }, binaryData: {} }, []],
  [
    { immutable: true, data: { a: '1' }, binaryData: { b: 'AA==' } },
    { immutable: false },
    [
      'immutable: Forbidden: field is immutable when `immutable` is set',
      'data: Forbidden: field is immutable when `immutable` is set',
      'binaryData: Forbidden: field is immutable when `immutable` is set',
    ],
  ],
])('update %#', (from, to, expected) => {
  expect(updated(configMapKind, from, to).errors).toEqual(expected);
});

it('table', () => {
  expect(headings(configMapKind).all).toBe('NAME | DATA | AGE');
  expect(row(configMapKind, { data: { a: '' }, binaryData: { b: '' } })).toEqual(['a', 2, '<unknown>']);
});
