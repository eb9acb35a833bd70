import { expect, it } from 'vitest';
import type { ConfigMap } from '../../../generated/types.ts';
import { created, headings, row, updated } from '../../../testing.ts';
import { configMapKind } from './index.ts';

it.each<[string, Partial<ConfigMap>, string[]]>([
  ['text and binary data', { data: { 'a.txt': 'x' }, binaryData: { b: 'AA==' } }, []],
  [
    'a key in data and binaryData',
    { data: { a: 'x' }, binaryData: { a: 'AA==' } },
    ['data[a]: Invalid value: "a": duplicate of key present in binaryData'],
  ],
  ['a key that is not a file name', { data: { '..': 'x' } }, ['data[..]: Invalid value: "..": must not be \'..\'']],
  ['1 MiB of data', { data: { a: 'ü'.repeat(512 * 1024 - 1) }, binaryData: { b: 'AAA=' } }, []],
  [
    'more than 1 MiB of data and binary data',
    { data: { a: 'ü'.repeat(512 * 1024 - 1) }, binaryData: { b: 'AAAA' } },
    [': Too long: may not be more than 1048576 bytes'],
  ],
  [
    'a key of binary data that is not a file name',
    { binaryData: { '..': '' } },
    ['binaryData[..]: Invalid value: "..": must not be \'..\''],
  ],
  [
    'more than 1 MiB of data',
    { data: { a: 'ü'.repeat(512 * 1024 + 1) } },
    [': Too long: may not be more than 1048576 bytes'],
  ],
])('the errors of a new ConfigMap with %s are reported', (_, map, expected) => {
  expect(created(configMapKind, map).errors).toEqual(expected);
});

it.each<[string, Partial<ConfigMap>, Partial<ConfigMap>, string[]]>([
  ['data may change until the ConfigMap is immutable', { data: { a: '1' } }, { data: { a: '2' }, immutable: true }, []],
  [
    'an immutable ConfigMap may be written unchanged',
    { immutable: true, data: { a: '1' } },
    { immutable: true, data: { a: '1' }, binaryData: {} },
    [],
  ],
  [
    'an immutable ConfigMap may not change',
    { immutable: true, data: { a: '1' }, binaryData: { b: 'AA==' } },
    { immutable: false },
    [
      'immutable: Forbidden: field is immutable when `immutable` is set',
      'data: Forbidden: field is immutable when `immutable` is set',
      'binaryData: Forbidden: field is immutable when `immutable` is set',
    ],
  ],
])('%s', (_, from, to, expected) => {
  expect(updated(configMapKind, from, to).errors).toEqual(expected);
});

it('the table of ConfigMaps counts the keys of data and binaryData', () => {
  expect(headings(configMapKind).all).toBe('NAME | DATA | AGE');
  expect(row(configMapKind, { data: { a: '' }, binaryData: { b: '' } })).toEqual(['a', 2, '<unknown>']);
});
