import { closeSync, openSync, writeSync } from 'node:fs';
import { expect, test } from 'vitest';
import { namingFile } from './written-file.ts';

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
