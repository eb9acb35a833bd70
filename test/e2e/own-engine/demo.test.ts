import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, expect, test } from 'vitest';
import { runCommand } from '../../../src/platform/processes.ts';
import { watchLeaks } from '../../support/leaks.ts';
import { REPOSITORY } from '../../support/lifepod.ts';

/** Other demos may run on the machine at the same time. */
const temporary = mkdtempSync(join(tmpdir(), 'lifepod-test-'));
const env = { ...process.env, TMPDIR: temporary };
const demoFolders = (): string[] => readdirSync(temporary).filter((name) => name.startsWith('lifepod-demo-'));

afterAll(() => rmSync(temporary, { recursive: true }));

const dataDirOf = (output: string): string => {
  const folder = /--data-dir (\S+)/.exec(output)?.[1];
  if (folder === undefined) throw new Error(`the output does not name a data folder:\n${output}`);
  return folder;
};

test('npm run demo shows the life of the Pod in order and leaves nothing behind', async () => {
  const signal = AbortSignal.timeout(120_000);
  const result = await runCommand('npm', ['run', 'demo'], { cwd: REPOSITORY, env, signal });
  expect(result.code, result.stdout + result.stderr).toBe(0);
  const life = ['Init:0/2', 'Init:1/2', 'PodInitializing', 'Running', 'Terminating', 'gone'];
  const places = life.map((status) => result.stdout.search(new RegExp(`^ *\\d+\\.\\d+ s .*${status}`, 'm')));
  expect(places.every((place) => place >= 0)).toBe(true);
  expect(places).toEqual([...places].sort((a, b) => a - b));
  expect(await (await watchLeaks(dataDirOf(result.stdout))).left()).toEqual([]);
  expect(demoFolders()).toEqual([]);
});

test('lifepod demo works without kubectl', async () => {
  const hide = 'mount --bind /dev/null "$(readlink -f "$(command -v kubectl)")" && exec "$@"';
  const launcher = join(REPOSITORY, 'bin/lifepod');
  const result = await runCommand('unshare', ['--mount', 'sh', '-c', hide, 'sh', launcher, 'demo'], {
    env,
    signal: AbortSignal.timeout(120_000),
  });
  expect(result.code, result.stdout + result.stderr).toBe(0);
  expect(result.stdout).not.toContain('kubectl');
  expect(result.stdout).toMatch(/^\$ lifepod up .* --pod-cidr 10\S+ --service-cidr 10\S+ /m);
  expect(result.stdout).toMatch(/created Pod myapp-pod[\s\S]* Running\n[\s\S]* gone\n/);
  expect(await (await watchLeaks(dataDirOf(result.stdout))).left()).toEqual([]);
});

test.each([
  ['the demo', 'Init:0/2', /^stopping and cleaning up$/m],
  ['the cleanup of the demo', '$ lifepod down', /^removed \/.*; the demo took /m],
])('Ctrl+C during %s leaves nothing behind', async (_, moment, last) => {
  // `detached` makes the demo the leader of a process group. The signal goes to the whole group, as from a terminal.
  const demo = spawn('bin/lifepod', ['demo'], {
    cwd: REPOSITORY,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(demo, 'close');
  const lines: string[] = [];
  for await (const line of createInterface({ input: demo.stdout })) {
    lines.push(line);
    if (line.includes(moment)) process.kill(-(demo.pid ?? 0), 'SIGINT');
    if (line.startsWith('stopping the engine')) process.kill(-(demo.pid ?? 0), 'SIGINT');
  }
  await ended;
  const output = lines.join('\n');
  expect(output).toContain(moment);
  expect(output).toMatch(last);
  expect(await (await watchLeaks(dataDirOf(output))).left()).toEqual([]);
  expect(demoFolders()).toEqual([]);
});
