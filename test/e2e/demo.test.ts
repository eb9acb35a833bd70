/** Point 1: `npm run demo`. */
import { readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runCommand } from '../../src/platform/processes.ts';
import { watchLeaks } from '../support/leaks.ts';
import { REPOSITORY, untilLine } from '../support/lifepod.ts';

const demoFolders = (): string[] => readdirSync(tmpdir()).filter((name) => name.startsWith('lifepod-demo-'));

const dataDirOf = (output: string): string => {
  const folder = /--data-dir (\S+)/.exec(output)?.[1];
  if (folder === undefined) throw new Error(`no data folder is named:\n${output}`);
  return folder;
};

test('the demo shows the life of the Pod in order, takes under 20 s, and leaves nothing behind', async () => {
  const folders = demoFolders();
  const begin = performance.now();
  const result = await runCommand('npm', ['run', 'demo'], { cwd: REPOSITORY, signal: AbortSignal.timeout(120_000) });
  expect(result.code, result.stdout + result.stderr).toBe(0);
  const life = ['Init:0/2', 'Init:1/2', 'PodInitializing', 'Running', 'Terminating', 'gone'];
  const places = life.map((status) => result.stdout.search(new RegExp(`^ *\\d+\\.\\d+ s .*${status}`, 'm')));
  expect(places.every((place) => place >= 0)).toBe(true);
  expect(places).toEqual([...places].sort((a, b) => a - b));
  expect(performance.now() - begin).toBeLessThan(20_000);
  expect(await (await watchLeaks(dataDirOf(result.stdout))).left()).toEqual([]);
  expect(demoFolders()).toEqual(folders);
});

test('the demo works without kubectl too', async () => {
  const hide = 'mount --bind /dev/null "$(readlink -f "$(command -v kubectl)")" && exec "$@"';
  const launcher = join(REPOSITORY, 'bin/lifepod');
  const result = await runCommand('unshare', ['--mount', 'sh', '-c', hide, 'sh', launcher, 'demo'], {
    signal: AbortSignal.timeout(120_000),
  });
  expect(result.code, result.stdout + result.stderr).toBe(0);
  expect(result.stdout).not.toContain('kubectl');
  expect(result.stdout).toMatch(/created Pod myapp-pod[\s\S]* Running\n[\s\S]* gone\n/);
  expect(await (await watchLeaks(dataDirOf(result.stdout))).left()).toEqual([]);
});

test('Ctrl+C during the demo cleans up too', async () => {
  const folders = demoFolders();
  let pid = 0;
  // The shell prints its PID and becomes the demo, so that the signal reaches the demo itself.
  const script = 'echo $$; exec bin/lifepod demo';
  const lines: string[] = [];
  await untilLine('sh', ['-c', `cd '${REPOSITORY}' && ${script}`], process.env, (line) => {
    lines.push(line);
    if (pid === 0) pid = Number(line);
    if (!line.includes('Init:0/2')) return /stopped|cleaned/i.test(line);
    process.kill(pid, 'SIGINT');
    return false;
  }).catch(() => undefined);
  expect(lines.join('\n')).toContain('Init:0/2');
  expect(await (await watchLeaks(dataDirOf(lines.join('\n')))).left()).toEqual([]);
  expect(demoFolders()).toEqual(folders);
});
