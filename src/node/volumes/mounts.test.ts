import { expect, test } from 'vitest';
import { isUnknownOptionError } from './mounts.ts';

test.each([
  [
    'mount: /x: wrong fs type, bad option, bad superblock on tmpfs, missing codepage or helper program, or other error.',
    true,
  ],
  ["mount: /x: fsconfig() failed: tmpfs: Unknown parameter 'noswap'.", true],
  ['mount: mounting tmpfs on /x failed: Invalid argument', true],
  ['mount: /x: mount(2) system call failed: Cannot allocate memory.', false],
  ['mount: /x: permission denied.', false],
  ['', false],
])('isUnknownOptionError(%j) is %s', (stderr, expected) => {
  expect(isUnknownOptionError(stderr)).toBe(expected);
});
