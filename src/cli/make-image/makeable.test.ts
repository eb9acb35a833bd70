import { expect, test } from 'vitest';
import { isMakeable, whyNotMakeable } from './makeable.ts';

test('an empty name is shown in quotes', () => {
  expect(whyNotMakeable('')).toBe("the image '' cannot be made from this machine, its name is not valid");
});

test.each([
  ['busybox', undefined],
  ['busybox:1.28', undefined],
  ['docker.io/library/busybox:1', undefined],
  [`busybox@sha256:${'0'.repeat(64)}`, ', because its name has a digest'],
  ['busybox:', ', its name is not valid'],
  ['Busybox', ', its name is not valid'],
  ['reg.example/busybox:1.28', ', because its name has a registry or a path: only plain busybox can, with any tag'],
  ['mine/busybox', ', because its name has a registry or a path: only plain busybox can, with any tag'],
  ['nginx', ', only busybox can, with any tag'],
  ['reg.example/nginx', ', only busybox can, with any tag'],
])('the image %s can be made, or not for this reason: %s', (reference, why) => {
  expect(whyNotMakeable(reference)).toBe(why && `the image ${reference} cannot be made from this machine${why}`);
  expect(isMakeable(reference)).toBe(why === undefined);
});
