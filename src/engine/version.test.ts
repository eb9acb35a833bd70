import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { runCommandOk } from '../platform/processes.ts';
import { gitCommit, versionText } from './version.ts';

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

test('the versions are a line, or JSON with all of them', () => {
  expect(versionText()).toMatch(/^lifepod \d+\.\d+\.\d+ [^\n]+$/);
  expect(JSON.parse(versionText('json'))).toMatchObject({
    version: expect.stringMatching(/^\d+\.\d+\.\d+/),
    gitVersion: expect.stringMatching(/^v1\.33\.0\+lifepod\./),
    kubernetesVersion: 'v1.33.0',
    nodeVersion: process.version,
  });
});
