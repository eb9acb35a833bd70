import { expect, test } from 'vitest';
import { binarySize } from './binary-size.ts';

test.each([
  [0, '0 B'],
  [1000, '1000 B'],
  [1024, '1.0 KiB'],
  [1.5 * 1024 ** 3, '1.5 GiB'],
  [120 * 1024 ** 2, '120 MiB'],
  [5000 * 1024 ** 4, '5000 TiB'],
])('binarySize() of %d bytes is %s', (bytes, expected) => {
  expect(binarySize(bytes)).toBe(expected);
});
