import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { diskTroubles } from '../../src/cli/status/disk-troubles.ts';
import { runCommandOk } from '../../src/platform/processes.ts';
import type { Scratch } from '../support/lifepod.ts';
import { ownDisk } from '../support/own-disk.ts';

let disk: Scratch;
beforeAll(async () => {
  disk = await ownDisk('4m', 100);
});
afterAll(() => disk?.remove());

const emptied = (): void => {
  for (const name of readdirSync(disk.path)) rmSync(join(disk.path, name));
};

test('a writable disk has no troubles', () => {
  expect(diskTroubles(disk.path)).toEqual([]);
});

test('a disk without a free byte is reported as full', () => {
  expect(() => writeFileSync(join(disk.path, 'file'), Buffer.alloc(8 << 20))).toThrow('ENOSPC');
  expect(diskTroubles(disk.path)).toEqual([`disk of ${disk.path}: full: only 0 B left: free some space`]);
  emptied();
});

test('a disk without a free inode is reported as full', () => {
  const fill = (): void => {
    for (let count = 0; count < 200; count++) writeFileSync(join(disk.path, `file-${count}`), '');
  };
  expect(fill).toThrow('ENOSPC');
  expect(diskTroubles(disk.path)).toEqual([`disk of ${disk.path}: full: no inodes left: remove some files`]);
  emptied();
});

test('a disk that is mounted read-only is reported', async () => {
  await runCommandOk('mount', ['-o', 'remount,ro', disk.path]);
  expect(diskTroubles(disk.path)).toEqual([`disk of ${disk.path}: mounted read-only: mount it for writing`]);
  await runCommandOk('mount', ['-o', 'remount,rw', disk.path]);
});
