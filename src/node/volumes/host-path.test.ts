import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { setUpHostPath } from './host-path.ts';

let root: string;
let server: Server;
beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'lifepod-host-path-'));
  mkdirSync(join(root, 'folder'));
  writeFileSync(join(root, 'file'), 'content');
  server = createServer();
  await new Promise<void>((resolve) => server.listen(join(root, 'socket'), resolve));
});
afterEach(async () => {
  await new Promise((resolve) => server.close(resolve));
  rmSync(root, { recursive: true });
});

const PLACES = ['folder', 'file', 'socket', '/dev/null', 'missing'];
const pathOf = (place: string): string => (place.startsWith('/') ? place : join(root, place));

test.each<[string, string[], string]>([
  ['Directory', ['folder'], 'a directory'],
  ['File', ['file'], 'a file'],
  ['Socket', ['socket'], 'a socket file'],
  ['CharDevice', ['/dev/null'], 'a character device'],
  ['BlockDevice', [], 'a block device'],
  ['DirectoryOrCreate', ['folder', 'missing'], 'a directory'],
  ['FileOrCreate', ['file', 'missing'], 'a file'],
  ['', PLACES, ''],
])('a hostPath volume of the type "%s" accepts only paths of this type', async (type, fitting, words) => {
  for (const place of PLACES) {
    const setUp = setUpHostPath({ path: pathOf(place), type });
    if (fitting.includes(place)) await setUp;
    else await expect(setUp).rejects.toThrow(`hostPath type check failed: ${pathOf(place)} is not ${words}`);
  }
  expect(existsSync(join(root, 'missing'))).toBe(type.endsWith('OrCreate'));
});

test('a hostPath volume creates a missing folder or file with its mode, and does not change an existing one', async () => {
  const mode = (path: string): number => statSync(join(root, path)).mode & 0o777;
  await setUpHostPath({ path: join(root, 'a/b'), type: 'DirectoryOrCreate' });
  await setUpHostPath({ path: join(root, 'new'), type: 'FileOrCreate' });
  expect([mode('a/b'), mode('new') & 0o700, statSync(join(root, 'new')).size]).toEqual([0o755, 0o600, 0]);
  chmodSync(join(root, 'folder'), 0o700);
  await setUpHostPath({ path: join(root, 'folder'), type: 'DirectoryOrCreate' });
  await setUpHostPath({ path: join(root, 'file'), type: 'FileOrCreate' });
  expect([mode('folder'), readFileSync(join(root, 'file'), 'utf8')]).toEqual([0o700, 'content']);
});

test('a hostPath volume of an unknown type or with a path that cannot be read is refused', async () => {
  await expect(setUpHostPath({ path: root, type: 'Folder' })).rejects.toThrow('"Folder" is an invalid volume type');
  await expect(setUpHostPath({ path: join(root, 'file/x'), type: 'DirectoryOrCreate' })).rejects.toThrow(
    expect.objectContaining({ code: 'ENOTDIR', syscall: 'stat' }),
  );
  await setUpHostPath({ path: join(root, 'missing') });
});
