import { closeSync, openSync, writeSync } from 'node:fs';
import { expect, test } from 'vitest';
import { isDiskFull, namingFile } from './written-file.ts';

test('the error of a write to an open file names the file', () => {
  const fd = openSync('/dev/full', 'w');
  try {
    const write = () => namingFile('/d/lock', () => writeSync(fd, 'x'));
    expect(write).toThrow(expect.objectContaining({ code: 'ENOSPC', path: '/d/lock' }));
  } finally {
    closeSync(fd);
  }
  expect(namingFile('/d/lock', () => 1)).toBe(1);
});

test('a full disk and a used-up disk quota count as a full disk, and other errors do not', () => {
  const errors = ['ENOSPC', 'EDQUOT', 'EFBIG', 'EIO'].map((code) => Object.assign(new Error(code), { code }));
  expect(errors.map(isDiskFull)).toEqual([true, true, false, false]);
  expect(isDiskFull(new Error('no code'))).toBe(false);
});
