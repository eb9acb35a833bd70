import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { dropBallast, keepBallast } from './disk-reserve.ts';

test('the ballast file is created once and can be dropped', () => {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-ballast-'));
  try {
    keepBallast(folder);
    const [name = ''] = readdirSync(folder);
    const { size, ino, mode } = statSync(join(folder, name));
    expect(size).toBe(4 * 2 ** 20);
    expect(mode & 0o777).toBe(0o600);
    keepBallast(folder);
    expect(statSync(join(folder, name)).ino).toBe(ino);
    dropBallast(folder);
    dropBallast(folder);
    expect(readdirSync(folder)).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('a ballast that cannot be created causes no error', () => {
  expect(() => keepBallast('/dev/null/folder')).not.toThrow();
  expect(() => dropBallast('/dev/null/folder')).not.toThrow();
});
