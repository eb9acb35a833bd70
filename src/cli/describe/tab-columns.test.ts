import { expect, test } from 'vitest';
import { tabColumns } from './tab-columns.ts';

test('consecutive lines share the width of a column, until a line without the column', () => {
  expect(tabColumns(['a:\tx', 'long name:\ty', 'no cell', 'b:\tz'])).toEqual([
    'a:          x',
    'long name:  y',
    'no cell',
    'b:  z',
  ]);
});

test('text after the last tab does not widen a column', () => {
  expect(tabColumns(['a\tvery long rest', 'b\tc\td'])).toEqual(['a  very long rest', 'b  c  d']);
});

test('lines share an inner column only while they share the outer one', () => {
  expect(tabColumns(['n:\tone\tOptional', 'name:\tthree\tOptional', 'x:\trest', 'y:\ta\tb'])).toEqual([
    'n:     one    Optional',
    'name:  three  Optional',
    'x:     rest',
    'y:     a  b',
  ]);
});

test('an empty cell is padded to the width of its column', () => {
  expect(tabColumns(['name:\tone', '\ttwo'])).toEqual(['name:  one', '       two']);
});
