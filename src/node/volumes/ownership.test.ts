import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { setOwnership } from './ownership.ts';

/** Without privileges, a process may give its files only to its own groups. */
const fsGroup = process.getgid?.() ?? 0;
const { signal } = new AbortController();
let scratch: string;
let volume: string;
beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), 'lifepod-ownership-'));
  volume = join(scratch, 'volume');
  mkdirSync(join(volume, 'folder'), { recursive: true, mode: 0o700 });
  writeFileSync(join(volume, 'folder/file'), '', { mode: 0o600 });
  chmodSync(volume, 0o700);
});
afterEach(() => rmSync(scratch, { recursive: true }));
const modeOf = (path: string): string => (statSync(join(scratch, path)).mode & 0o7777).toString(8);

test('the group may read, write and enter each folder and read and write each file of the volume', async () => {
  await setOwnership(volume, { fsGroup }, signal);
  expect(['volume', 'volume/folder', 'volume/folder/file'].map(modeOf)).toEqual(['2770', '2770', '660']);
  expect(statSync(join(volume, 'folder/file')).gid).toBe(fsGroup);
});

test('without an fsGroup, nothing changes', async () => {
  await setOwnership(volume, {}, signal);
  expect(['volume', 'volume/folder/file'].map(modeOf)).toEqual(['700', '600']);
});

test('OnRootMismatch changes nothing if the folder of the volume has the group and the mode', async () => {
  const policy = { fsGroup, fsGroupChangePolicy: 'OnRootMismatch' } as const;
  chmodSync(volume, 0o2770);
  await setOwnership(volume, policy, signal);
  expect(modeOf('volume/folder/file')).toBe('600');
  // With this mode, the group cannot write to the folder.
  chmodSync(volume, 0o2750);
  await setOwnership(volume, policy, signal);
  expect(modeOf('volume/folder/file')).toBe('660');
});

test('links in the volume are not followed', async () => {
  writeFileSync(join(scratch, 'outside'), '', { mode: 0o600 });
  symlinkSync(join(scratch, 'outside'), join(volume, 'link'));
  symlinkSync(join(scratch, 'none'), join(volume, 'broken'));
  await setOwnership(volume, { fsGroup }, signal);
  expect(modeOf('outside')).toBe('600');
  expect(modeOf('volume/folder/file')).toBe('660');
});

test('a change that is aborted leaves the folder of the volume as it was', async () => {
  await expect(setOwnership(volume, { fsGroup }, AbortSignal.abort())).rejects.toThrow(/abort/i);
  expect(modeOf('volume')).toBe('700');
});
