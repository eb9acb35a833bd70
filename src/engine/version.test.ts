import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { createMetrics } from '../platform/metrics.ts';
import { runCommandOk } from '../platform/processes.ts';
import { addBuildInfo, buildDate, gitCommit, SERVED_VERSION, versionText } from './version.ts';

const folder = mkdtempSync(join(tmpdir(), 'lifepod-test-'));
const sources = join(folder, 'src');
/** The environment of git, without the settings of the user, which could name another repository or require signatures. */
const env = {
  PATH: process.env['PATH'],
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_COMMITTER_DATE: '2026-01-31T13:00:00+0100',
};
const gitIn = async (path: string, ...args: string[]): Promise<string> =>
  (
    await runCommandOk('git', ['-C', path, '-c', 'user.name=test', '-c', 'user.email=test@example.com', ...args], {
      env,
    })
  ).trim();
const git = (...args: string[]): Promise<string> => gitIn(folder, ...args);

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
  await git('worktree', 'add', '--quiet', '-b', 'other', join(folder, 'linked'));
  await git('commit', '--quiet', '--allow-empty', '--message', 'newer');
  mkdirSync(join(folder, 'linked/src'));
  expect(gitCommit(join(folder, 'linked/src'))).toBe(commit);
  writeFileSync(join(sources, 'git-commit'), 'abc\n');
  expect(gitCommit(sources)).toBe('abc');
});

test('the date is that of the package, or of the commit of a clone, or unknown', async () => {
  const own = join(folder, 'dated/src');
  mkdirSync(own, { recursive: true });
  expect(buildDate(own)).toBeUndefined();
  const dated = (...args: string[]) => gitIn(join(folder, 'dated'), ...args);
  await dated('init', '--quiet');
  expect(buildDate(own)).toBeUndefined();
  await dated('commit', '--quiet', '--allow-empty', '--message', 'empty', '--date', '2025-01-01T00:00:00Z');
  expect(buildDate(own)).toBe('2026-01-31T12:00:00Z');
  await dated('worktree', 'add', '--quiet', '--detach', join(folder, 'dated-linked'));
  expect(buildDate(join(folder, 'dated-linked/src'))).toBe('2026-01-31T12:00:00Z');
  await dated('gc', '--quiet');
  expect(buildDate(own)).toBeUndefined();
  writeFileSync(join(own, 'build-date'), '2026-02-01T00:00:00Z\n');
  expect(buildDate(own)).toBe('2026-02-01T00:00:00Z');
});

test('the versions as a line, as JSON and as a metric are the same', async () => {
  const versions = JSON.parse(versionText('json')) as Record<string, string>;
  const commit = versions['gitCommit'] === undefined ? '' : `, commit ${versions['gitCommit'].slice(0, 12)}`;
  expect(versionText()).toBe(`lifepod ${versions['version']} (${SERVED_VERSION}${commit}, Node.js ${process.version})`);
  expect(versions).toMatchObject({ gitVersion: SERVED_VERSION, kubernetesRelease: 'v1.33.0' });
  const metrics = createMetrics();
  addBuildInfo(metrics);
  const [family] = await metrics.families();
  expect(family?.samples).toEqual([
    {
      labels: expect.objectContaining({
        git_version: SERVED_VERSION,
        git_commit: versions['gitCommit'] ?? '',
        minor: '33',
      }),
      value: 1,
    },
  ]);
});
