/** LMDB can crash in the first commit to a compacted data file, whose list of free pages is empty: see beginFreeList() in tables.ts. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test } from 'vitest';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-first-commit-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

const MAX_MS = 60_000;

test('the first commit of a compacted store can delete its history or update all keys', {
  timeout: MAX_MS,
}, async () => {
  const script = join(import.meta.dirname, 'first-commit-fixture.ts');
  const args = ['--no-wasm-tier-up', script, folder];
  expect(await promisify(execFile)(process.execPath, args)).toEqual({
    stdout: 'forget the history\ntrim the history\ncompact the history\nupdate all keys\n',
    stderr: '',
  });
});
