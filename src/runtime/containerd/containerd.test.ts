/** Uses a fake containerd. test/integration tests the same with a real containerd. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, expect, test, vi } from 'vitest';
import { UserError } from '../../platform/files.ts';
import type { Log } from '../../platform/platform.ts';
import { runCommandOk } from '../../platform/processes.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { type Containerd, type ContainerdOptions, startContainerd } from './containerd.ts';
import { writeFakeContainerd, writeProgram } from './fake-containerd-fixture.ts';
import { containerdPaths } from './paths.ts';
import { findContainerd, findShims } from './process-table.ts';

// Test files share the loaded modules, so this file loads its own copies, and the next file loads the original modules.
vi.hoisted(() => vi.resetModules());
afterAll(() => {
  vi.doUnmock('../../platform/processes.ts');
  vi.doUnmock('./process-table.ts');
  vi.resetModules();
});
// No test may signal other processes of the machine or unmount anything, even if the code under test has a defect.
vi.mock('../../platform/processes.ts', { spy: true });
vi.mock('./process-table.ts', { spy: true });

let folder: string;
let options: ContainerdOptions;
let started: Containerd | undefined;
let warnings: [string, unknown][];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lp-'));
  warnings = [];
  const warn = (message: string, fields?: object): void => void warnings.push([message, fields]);
  const log: Log = { debug: () => undefined, info: () => undefined, warn, error: warn, child: () => log };
  const [cniConfDir, cniBinDir] = [join(folder, 'cni'), join(folder, 'bin')];
  options = { dataDir: folder, log, timers: createVirtualTimers(), sandboxImage: 'pause:1', cniConfDir, cniBinDir };
  writeProgram(join(folder, 'bin'), 'runc', 'exit 0');
  for (const find of [findContainerd, findShims]) vi.mocked(find).mockReturnValue([]);
  vi.mocked(runCommandOk).mockResolvedValue('');
  vi.stubEnv('PATH', `${join(folder, 'bin')}:${process.env['PATH']}`);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  vi.resetAllMocks();
  await started?.stop();
  started = undefined;
  rmSync(folder, { recursive: true });
});

async function start(sandboxes: readonly string[] = [], signal?: AbortSignal): Promise<Containerd> {
  writeFakeContainerd(join(folder, 'bin'), sandboxes);
  started = await startContainerd(options, signal);
  return started;
}
const calls = (): string[] => readFileSync(join(folder, 'bin/calls'), 'utf8').trim().split('\n');

test('containerd is started with its configuration, and a stop before the shutdown does not end its sandboxes', async () => {
  const paths = containerdPaths(folder);
  const { endpoint, version, pid, stop, shutdown } = await start(['s1']);
  expect([endpoint, version]).toEqual([`unix://${paths.socket}`, 'v9']);
  expect(pid()).toBeGreaterThan(0);
  const capabilities = /^CapEff:\s*(.*)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '';
  // CAP_SYS_RESOURCE is bit 24: the lowest bit of the seventh hexadecimal digit from the right.
  const mayLower = Number.parseInt(capabilities.at(-7) ?? '0', 16) % 2 === 1;
  expect(readFileSync(paths.config, 'utf8')).toContain(`restrict_oom_score_adj = ${!mayLower}\n`);
  expect(existsSync(options.cniConfDir)).toBe(true);
  await Promise.all([stop(), stop()]);
  expect(pid()).toBeUndefined();
  expect(existsSync(paths.run)).toBe(true);
  await shutdown();
  expect([existsSync(join(folder, 'bin/calls')), existsSync(paths.run), warnings]).toEqual([false, false, []]);
});

test('a shutdown ends all sandboxes and removes the run folder', async () => {
  const { shutdown, pid } = await start(['s1', 's2']);
  await shutdown();
  expect(calls()).toEqual(['stop s1', 'remove s1', 'stop s2', 'remove s2']);
  expect([pid(), existsSync(containerdPaths(folder).run), warnings]).toEqual([undefined, false, []]);
});

test('a shutdown removes the run folder even if a sandbox cannot be stopped', async () => {
  const { shutdown } = await start(['stuck', 's2']);
  await shutdown();
  expect(calls()).toEqual(['stop stuck']);
  expect(warnings).toEqual([['could not stop and remove all sandboxes', { error: expect.stringContaining('stuck') }]]);
  expect(existsSync(containerdPaths(folder).run)).toBe(false);
});

test('a containerd that ends at its start, or whose start is aborted, rejects the start', async () => {
  await expect(start([], AbortSignal.abort(new Error('enough')))).rejects.toThrow(/^enough$/);
  writeProgram(join(folder, 'bin'), 'containerd', 'exit 3');
  await expect(startContainerd(options)).rejects.toThrow(UserError);
});
