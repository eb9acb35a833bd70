import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createLocalFolders, type LocalFolders } from './local-folders.ts';

let root: string;
let folders: LocalFolders;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'lifepod-local-'));
  folders = createLocalFolders(root, 'n');
});
afterEach(() => rmSync(root, { recursive: true }));

const mode = (path: string): number => statSync(path).mode & 0o777;

test('the folder of a local volume is writable for everyone inside a private folder, and is removed with its content', async () => {
  const folder = folders.path('pvc-1.x');
  expect([folders.nodeName, folder]).toEqual(['n', join(root, 'volumes/pvc-1.x')]);
  await folders.create('pvc-1.x');
  expect([mode(folder), mode(join(root, 'volumes')) & 0o077]).toEqual([0o777, 0]);
  mkdirSync(join(folder, 'data'));
  writeFileSync(join(folder, 'data/file'), '');
  await folders.create('pvc-1.x');
  expect(existsSync(join(folder, 'data/file'))).toBe(true);
  await folders.remove('pvc-1.x');
  expect(existsSync(folder)).toBe(false);
  await folders.remove('pvc-1.x');
});

test('removeUnused() removes only an empty folder', async () => {
  await folders.removeUnused('missing');
  await folders.create('empty');
  await folders.removeUnused('empty');
  expect(existsSync(folders.path('empty'))).toBe(false);
  await folders.create('used');
  writeFileSync(join(folders.path('used'), 'file'), '');
  await folders.removeUnused('used');
  expect(existsSync(join(folders.path('used'), 'file'))).toBe(true);
  writeFileSync(folders.path('file'), '');
  await expect(folders.removeUnused('file')).rejects.toThrow('ENOTDIR');
});

test.each(['', '.', '..', 'a/b', '-a', 'A'])('the volume name "%s" is refused', async (name) => {
  expect(() => folders.path(name)).toThrow(`invalid volume name: ${JSON.stringify(name)}`);
  await expect(folders.remove(name)).rejects.toThrow('invalid volume name');
});
