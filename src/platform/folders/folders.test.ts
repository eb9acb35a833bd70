import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createFolders, removeFolders } from './folders.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-folders-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const path = (name: string): string => join(folder, name);

test('removeFolders removes only the folders that createFolders has created', () => {
  mkdirSync(path('a'));
  const created = createFolders(path('a/b/c'));
  expect(created).toEqual([path('a/b/c'), path('a/b')]);
  expect(createFolders(path('a/b/c'))).toEqual([]);
  removeFolders(created);
  expect(readdirSync(path('a'))).toEqual([]);
});

test('removeFolders keeps a folder that is not empty, and its parents', () => {
  const created = createFolders(path('a/b/c'));
  writeFileSync(path('a/b/file'), '');
  removeFolders(created);
  expect([existsSync(path('a/b/c')), readdirSync(path('a/b'))]).toEqual([false, ['file']]);
});

test('a folder that cannot be created leaves no parents', () => {
  expect(() => createFolders(path(`a/b/${'x'.repeat(300)}`))).toThrow('ENAMETOOLONG');
  writeFileSync(path('file'), '');
  expect(() => createFolders(path('file/b'))).toThrow('ENOTDIR');
  expect(readdirSync(folder)).toEqual(['file']);
});
