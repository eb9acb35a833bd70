import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { runCommandOk } from '../platform/processes.ts';
import { gitCommit } from './version.ts';

const folder = mkdtempSync(join(tmpdir(), 'lifepod-test-'));
const sources = join(folder, 'src');
const git = async (...args: string[]): Promise<string> =>
  (
    await runCommandOk('git', ['-C', folder, '-c', 'user.name=test', '-c', 'user.email=test@example.com', ...args])
  ).trim();

afterAll(() => rmSync(folder, { recursive: true }));

test('the commit is that of a clone, or the one that the package contains, or unknown', async () => {
  mkdirSync(sources);
  expect(gitCommit(sources)).toBeUndefined();
  await git('init', '--quiet', '--initial-branch', 'some/branch');
  await git('commit', '--quiet', '--allow-empty', '--message', 'empty');
  const commit = await git('rev-parse', 'HEAD');
  expect(gitCommit(sources)).toBe(commit);
  await git('pack-refs', '--all');
  expect(gitCommit(sources)).toBe(commit);
  await git('checkout', '--quiet', '--detach');
  expect(gitCommit(sources)).toBe(commit);
  writeFileSync(join(sources, 'git-commit'), 'abc\n');
  expect(gitCommit(sources)).toBe('abc');
});
