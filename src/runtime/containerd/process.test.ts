/** Uses programs that replace containerd. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { UserError } from '../../platform/files.ts';
import { createVirtualTimers, type VirtualTimers } from '../../platform/virtual-timers.ts';
import { writeFakeContainerd, writeProgram } from './fake-containerd-fixture.ts';
import { type LogFile, openLogFile } from './log-file.ts';
import { type ContainerdPaths, containerdPaths } from './paths.ts';
import { type ContainerdProcess, launchContainerd } from './process.ts';

let folder: string;
let paths: ContainerdPaths;
let logFile: LogFile;
let timers: VirtualTimers;
let launched: ContainerdProcess | undefined;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-process-'));
  const run = join(folder, 'run');
  mkdirSync(run);
  const [config, log, socket] = [join(folder, 'config'), join(folder, 'log'), join(run, 'containerd.sock')];
  paths = { ...containerdPaths(folder), run, config, log, socket };
  writeFileSync(paths.config, `address = "${paths.socket}"`);
  logFile = openLogFile(paths.log);
  timers = createVirtualTimers();
});
afterEach(async () => {
  vi.unstubAllEnvs();
  const pid = launched?.pid();
  if (pid !== undefined) process.kill(pid, 'SIGKILL');
  await launched?.exited;
  launched = undefined;
  logFile.close();
  rmSync(folder, { recursive: true });
});

function launch(program: string, signal?: AbortSignal): ContainerdProcess {
  launched = launchContainerd({ program, paths, logFile, timers }, signal);
  launched.ready.catch(() => undefined);
  return launched;
}
const runs = (script: string, signal?: AbortSignal) => launch(writeProgram(folder, 'containerd', script), signal);
const exists = (name: string) =>
  vi.waitFor(() => expect(existsSync(join(folder, name))).toBe(true), { timeout: 20_000 });

test('containerd is ready once it serves CRI, with a private socket, and end() sends it SIGTERM', async () => {
  writeFileSync(paths.socket, 'of an earlier containerd');
  const { ready, pid, end, exited } = launch(writeFakeContainerd(folder));
  expect(await ready).toBe('v9');
  expect(statSync(paths.socket).mode & 0o777).toBe(0o600);
  expect(pid()).toBeGreaterThan(0);
  await end();
  expect([pid(), await exited]).toEqual([undefined, { code: null, signal: 'SIGTERM' }]);
  await end();
  // Neither the start nor the end leaves a timer behind.
  expect(await timers.run(() => false, timers.now() + 100_000)).toBe(false);
});

test.each([
  [
    'an exit code',
    'echo failed to load cni during init >&2; echo no space left >&2; exit 3',
    'exit code 3',
    (log: string) => `the end of its log ${log}: no space left`,
  ],
  [
    'a signal',
    'echo failed to load cni during init >&2; kill -9 $$',
    'SIGKILL',
    (log: string) => `its log ${log} shows no cause`,
  ],
])('a containerd that ends with %s before it serves CRI does not start', async (_, script, cause, endOfLog) => {
  const { ready } = runs(script);
  const error = await ready.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(UserError);
  expect((error as Error).message).toBe(`containerd does not start: it ended with ${cause}; ${endOfLog(paths.log)}`);
});

test('a containerd that does not serve CRI within 60 s is killed', async () => {
  const set = vi.spyOn(timers, 'at');
  const { ready, exited } = runs('exec sleep 1000');
  expect(set.mock.calls.map(([time]) => time - timers.now())).toEqual([60_000]);
  timers.advance(60_000);
  await expect(ready).rejects.toThrow(
    `containerd does not start: it does not serve CRI within 60 s; if the machine was busy, try again; its log ${paths.log} shows no cause`,
  );
  expect(await exited).toEqual({ code: null, signal: 'SIGKILL' });
});

test('a launch that is aborted kills containerd and rejects with the reason', async () => {
  const abort = new AbortController();
  const { ready, exited } = runs('exec sleep 1000', abort.signal);
  abort.abort(new Error('enough'));
  await expect(ready).rejects.toThrow(/^enough$/);
  expect(await exited).toEqual({ code: null, signal: 'SIGKILL' });
  expect(() => runs('exec sleep 1000', abort.signal)).toThrow(/^enough$/);
});

test('a containerd that ignores SIGTERM is killed after 10 s', async () => {
  const { exited, end } = runs(`trap '' TERM; : > ${folder}/ready; exec sleep 1000`);
  await exists('ready');
  const set = vi.spyOn(timers, 'at');
  const ended = end();
  expect(set.mock.calls.map(([time]) => time - timers.now())).toEqual([10_000]);
  timers.advance(10_000);
  await ended;
  expect(await exited).toEqual({ code: null, signal: 'SIGKILL' });
});

test('containerd gets only the variables of the environment that it needs, and the system folders as part of PATH', async () => {
  vi.stubEnv('HTTP_PROXY', 'http://proxy');
  vi.stubEnv('NO_PROXY', undefined);
  vi.stubEnv('LIFEPOD_SECRET', 'secret');
  vi.stubEnv('PATH', '/usr/bin');
  await runs(`env > ${folder}/env`).exited;
  const lines = readFileSync(join(folder, 'env'), 'utf8').split('\n');
  expect(lines).toEqual(
    expect.arrayContaining([
      'HTTP_PROXY=http://proxy',
      'PATH=/usr/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin:/bin',
      'PWD=/',
    ]),
  );
  expect(lines.filter((line) => /^(NO_PROXY|LIFEPOD_SECRET)=/.test(line))).toEqual([]);
});
