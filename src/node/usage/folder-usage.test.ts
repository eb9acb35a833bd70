import { linkSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { runCommandOk } from '../../platform/processes.ts';
import { folderUsage } from './folder-usage.ts';

const { signal } = new AbortController();
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-usage-'));
});
afterEach(() => runCommandOk('rm', ['-rf', folder]));

const shell = (script: string): Promise<unknown> => runCommandOk('sh', ['-ec', `cd '${folder}'; ${script}`]);

it('folderUsage counts everything below the folder, each file once, and follows no links', async () => {
  mkdirSync(join(folder, 'deep/er'), { recursive: true });
  writeFileSync(join(folder, 'deep/er/file'), new Uint8Array(100_000));
  linkSync(join(folder, 'deep/er/file'), join(folder, 'again'));
  symlinkSync('/', join(folder, 'all'));
  const { bytes, inodes } = await folderUsage(folder, signal);
  expect(inodes).toBe(5);
  expect(bytes).toBeGreaterThanOrEqual(100_000);
  expect(bytes).toBeLessThan(200_000);
});

it('folderUsage returns zero for a missing folder', async () => {
  const errors: Error[] = [];
  expect(await folderUsage(join(folder, 'gone'), signal, (error) => errors.push(error))).toEqual({
    bytes: 0,
    inodes: 0,
  });
  expect(errors).toEqual([]);
});

it('folderUsage counts files deeper than the longest path, and files whose names are not valid UTF-8', async () => {
  const name = 'd'.repeat(250);
  await shell('mkdir top; dd if=/dev/zero of=top/file bs=1M count=3 2>&1');
  // Build the folders from the inside out, so that no path in a command is too long.
  await shell(`for i in $(seq 40); do mkdir -p new/side; mv top new/${name}; mv new top; done`);
  await shell(`name=$(printf 'n\\377'); mkdir "$name"; dd if=/dev/zero of="$name/file" bs=1M count=2 2>&1`);
  const errors: Error[] = [];
  const { bytes, inodes } = await folderUsage(folder, signal, (error) => errors.push(error));
  expect(errors).toEqual([]);
  expect(inodes).toBe(1 + (1 + 2 * 40 + 1) + 2);
  expect(bytes).toBeGreaterThanOrEqual(5 * 2 ** 20);
});

it('folderUsage rejects when the signal aborts', async () => {
  writeFileSync(join(folder, 'file'), '');
  const abort = AbortSignal.abort(new Error('enough'));
  await expect(folderUsage(folder, abort)).rejects.toThrow('enough');
});

it('folderUsage reports a path that cannot be read, but not one that is below a file', async () => {
  writeFileSync(join(folder, 'file'), '');
  const codes: (string | undefined)[] = [];
  const measure = (name: string) =>
    folderUsage(join(folder, name), signal, (error: NodeJS.ErrnoException) => codes.push(error.code));
  expect(await measure('file/x')).toEqual({ bytes: 0, inodes: 0 });
  expect(codes).toEqual([]);
  expect(await measure('n'.repeat(300))).toEqual({ bytes: 0, inodes: 0 });
  expect(codes).toEqual(['ENAMETOOLONG']);
});
