import { mkdtempSync, rmSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, expect, test, vi } from 'vitest';
import { StorageFullError } from '../store.ts';
import { openTables } from './tables.ts';

// The modules of this file are its own, because another file may have loaded them without the spies.
vi.hoisted(() => vi.resetModules());
afterAll(() => {
  vi.doUnmock('node:fs/promises');
  vi.resetModules();
});
vi.mock('node:fs/promises', { spy: true });

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-tables-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

test.each(['ENOSPC', 'EDQUOT'])('opening the store fails with the message about a full disk after %s', async (code) => {
  vi.mocked(mkdir).mockRejectedValueOnce(Object.assign(new Error(code), { code }));
  const opened = openTables(folder);
  await expect(opened).rejects.toBeInstanceOf(StorageFullError);
  await expect(opened).rejects.toThrow(
    `cannot write to the store in ${folder}: the disk is full; free some space and try again`,
  );
});
