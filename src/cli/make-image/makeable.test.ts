import { expect, test } from 'vitest';
import { isMakeable } from './makeable.ts';

test.each([
  ['busybox', true],
  ['busybox:1.28', true],
  ['docker.io/library/busybox:1', true],
  [`busybox@sha256:${'0'.repeat(64)}`, false],
  ['busybox:', false],
  ['Busybox', false],
  ['example.com/busybox', false],
  ['nginx', false],
])('the image %s can be made: %s', (reference, makeable) => {
  expect(isMakeable(reference)).toBe(makeable);
});
