import { expect, test } from 'vitest';
import { tabColumns } from './tab-columns.ts';

test('lines that follow each other share the width of a column; a line without the column ends it', () => {
  expect(tabColumns(['a:\tx', 'long name:\ty', 'no cell', 'b:\tz'])).toEqual([
    'a:          x',
    'long name:  y',
    'no cell',
    'b:  z',
  ]);
});

test('what comes after the last tab makes no column wider', () => {
  expect(tabColumns(['a\tvery long rest', 'b\tc\td'])).toEqual(['a  very long rest', 'b  c  d']);
});

test('inner columns are shared only within the outer one', () => {
  expect(tabColumns(['n:\tone\tOptional', 'name:\tthree\tOptional', 'x:\trest', 'y:\ta\tb'])).toEqual([
    'n:     one    Optional',
    'name:  three  Optional',
    'x:     rest',
    'y:     a  b',
  ]);
});

test('an empty cell is as wide as the others', () => {
  expect(tabColumns(['name:\tone', '\ttwo'])).toEqual(['name:  one', '       two']);
});
