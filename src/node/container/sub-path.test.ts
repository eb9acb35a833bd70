import { chmodSync, mkdirSync, mkdtempSync, readlinkSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openSubPath, SubPathFolderError } from './sub-path.ts';

let scratch: string;
let volume: string;
beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), 'lifepod-sub-path-'));
  volume = join(scratch, 'volume');
  mkdirSync(join(volume, 'data/deep'), { recursive: true });
  writeFileSync(join(volume, 'data/file'), 'content');
  mkdirSync(join(scratch, 'outside'));
});
afterEach(() => rmSync(scratch, { recursive: true }));

/** Resolves to the path of the opened file or folder, relative to the scratch folder. */
async function opened(subPath: string): Promise<string> {
  const handle = await openSubPath(volume, subPath);
  try {
    return readlinkSync(`/proc/self/fd/${handle.fd}`).slice(scratch.length + 1);
  } finally {
    await handle.close();
  }
}

test('a subPath names a file or a folder of the volume', async () => {
  expect(await opened('data/file')).toBe('volume/data/file');
  expect(await opened('data/deep')).toBe('volume/data/deep');
});

test('missing folders of a subPath are created with the mode of the volume', async () => {
  chmodSync(volume, 0o2771);
  expect(await opened('data/new/one')).toBe('volume/data/new/one');
  for (const path of ['data/new', 'data/new/one']) expect(statSync(join(volume, path)).mode & 0o7777).toBe(0o2771);
  expect(statSync(join(volume, 'data')).mode & 0o7777).not.toBe(0o2771);
});

test('a subPath may use a link to a place inside the volume', async () => {
  symlinkSync('data', join(volume, 'link'));
  expect(await opened('link/deep')).toBe('volume/data/deep');
  expect(await opened('link/new')).toBe('volume/data/new');
});

test('a subPath that leads out of the volume is refused, and nothing is created there', async () => {
  symlinkSync(join(scratch, 'outside'), join(volume, 'link'));
  await expect(opened('link')).rejects.toThrow('link is outside the volume');
  await expect(opened('link/new')).rejects.toThrow(SubPathFolderError);
  await expect(opened('link/new')).rejects.toThrow('link/new is outside the volume');
  expect(statSync(join(scratch, 'outside')).nlink).toBe(2);
});

test('a folder whose name begins with the name of the volume is outside the volume', async () => {
  mkdirSync(join(scratch, 'volume-2'));
  symlinkSync(join(scratch, 'volume-2'), join(volume, 'link'));
  await expect(opened('link')).rejects.toThrow('link is outside the volume');
});

test('a file cannot be a folder of a subPath', async () => {
  await expect(opened('data/file/new')).rejects.toThrow('ENOTDIR');
});
