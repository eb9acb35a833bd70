/** Replaces the functions for processes and control groups, and the command umount. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Log } from '../../platform/platform.ts';
import { childrenOf, haveEnded, runCommandOk, sendSignal } from '../../platform/processes.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { cgroupFolders, removeEmptyCgroups } from './cgroups.ts';
import { type ContainerdPaths, containerdPaths } from './paths.ts';
import { findContainerd, findShims, listeningSockets } from './process-table.ts';
import { clearRunState, endLeftover, mountPoints, prepareRunFolder } from './run-state.ts';

// Test files share the loaded modules, so this file loads its own copies, and the next file loads the original modules.
vi.hoisted(() => vi.resetModules());
afterAll(() => {
  vi.doUnmock('../../platform/processes.ts');
  vi.doUnmock('./cgroups.ts');
  vi.doUnmock('./process-table.ts');
  vi.resetModules();
});
vi.mock('../../platform/processes.ts', { spy: true });
vi.mock('./cgroups.ts', { spy: true });
vi.mock('./process-table.ts', { spy: true });

let folder: string;
let paths: ContainerdPaths;
let logged: [string, unknown][];
/** The signals, waits and commands, in order. */
let calls: unknown[][];
/** The results of the waits for the end of processes, in order; further waits end with true. */
let waits: boolean[];

const write = (message: string, fields?: object): void => void logged.push([message, fields]);
const log: Log = { debug: write, info: write, warn: write, error: write, child: () => log };
const timers = createVirtualTimers();

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-run-state-'));
  paths = containerdPaths(folder);
  [logged, calls, waits] = [[], [], []];
  vi.mocked(runCommandOk).mockImplementation(async (command, args) => {
    calls.push([command, ...args]);
    return '';
  });
  vi.mocked(sendSignal).mockImplementation((pid, signal) => void calls.push([signal, pid]));
  vi.mocked(haveEnded).mockImplementation(async (pids, millis) => {
    calls.push(['wait', millis, ...pids]);
    return waits.shift() ?? true;
  });
  vi.mocked(removeEmptyCgroups).mockImplementation((folders) => void calls.push(['rmdir', ...folders]));
  vi.mocked(cgroupFolders).mockImplementation((pid) => ['/cgroup', `/cgroup/${pid}`]);
  for (const find of [findContainerd, findShims, childrenOf]) vi.mocked(find).mockReturnValue([]);
});
afterEach(() => {
  vi.resetAllMocks();
  rmSync(folder, { recursive: true });
});

test('the content of the run folder stays until the machine boots again, and is then deleted', async () => {
  const file = join(paths.run, 'state');
  await prepareRunFolder(paths);
  writeFileSync(file, 'of this boot');
  await prepareRunFolder(paths);
  expect(existsSync(file)).toBe(true);
  const boot = readFileSync(paths.bootId, 'utf8');
  writeFileSync(paths.bootId, 'an earlier boot\n');
  await prepareRunFolder(paths);
  expect(existsSync(file)).toBe(false);
  expect(readFileSync(paths.bootId, 'utf8')).toBe(boot);
  expect(calls).toEqual([]);
});

test('the content of the run folder is deleted when PID 1 is another process, as after a restart of a container', async () => {
  const file = join(paths.run, 'state');
  await prepareRunFolder(paths);
  const start = readFileSync(paths.initStart, 'utf8');
  writeFileSync(file, 'of an earlier container');
  writeFileSync(paths.initStart, '1\n');
  await prepareRunFolder(paths);
  expect(existsSync(file)).toBe(false);
  expect(readFileSync(paths.initStart, 'utf8')).toBe(start);
});

test('the content of a run folder that an older version created during this boot stays', async () => {
  const file = join(paths.run, 'state');
  await prepareRunFolder(paths);
  const start = readFileSync(paths.initStart, 'utf8');
  rmSync(paths.initStart);
  writeFileSync(file, 'of this boot');
  await prepareRunFolder(paths);
  expect(existsSync(file)).toBe(true);
  expect(readFileSync(paths.initStart, 'utf8')).toBe(start);
});

test('the mount points are read in their order, with their special characters', () => {
  const lines = ['25 1 8:1 / / rw - ext4 /dev/sda1 rw', '26 25 0:5 / /a\\040b\\134c rw shared:1 - tmpfs none rw', ''];
  expect(mountPoints(lines.join('\n'))).toEqual(['/', '/a b\\c']);
});

const TERM = [
  ['SIGTERM', 1],
  ['SIGTERM', 2],
  ['wait', 10_000, 1, 2],
];
const KILL = [
  ['SIGKILL', 1],
  ['SIGKILL', 2],
  ['wait', 5000, 1, 2],
];

test.each([
  ['gets SIGTERM', [true], TERM],
  ['gets SIGKILL if it does not end within 10 s', [false, true], [...TERM, ...KILL]],
])('a containerd that outlived its engine %s', async (_, ended, expected) => {
  vi.mocked(findContainerd).mockReturnValue([1, 2]);
  waits = ended;
  await endLeftover(paths, log, timers);
  expect(calls).toEqual(expected);
  expect(logged).toEqual([['ending a containerd that outlived its engine', { pids: [1, 2] }]]);
});

test('a containerd that does not end even when it is killed is an error', async () => {
  vi.mocked(findContainerd).mockReturnValue([1, 2]);
  waits = [false, false];
  await expect(endLeftover(paths, log, timers)).rejects.toThrow('the processes 1, 2 do not end');
  expect(calls).toEqual([...TERM, ...KILL]);
});

const clear = (): Promise<void> => clearRunState({ dataDir: folder, log, timers });

test('a run without processes and mounts is cleared by the removal of its folder, and the images are kept', async () => {
  for (const each of [paths.run, paths.home]) mkdirSync(each);
  await clear();
  expect([calls, logged]).toEqual([[], []]);
  expect([existsSync(paths.run), existsSync(paths.home)]).toEqual([false, true]);
});

test('the shims and containers of a run are killed, and then their control groups and sockets are removed', async () => {
  const bundle = join(paths.state, 'io.containerd.runtime.v2.task/k8s.io/c1');
  const socket = join(folder, 'shim.sock');
  mkdirSync(bundle, { recursive: true });
  writeFileSync(join(bundle, 'address'), `unix://${socket}`);
  writeFileSync(socket, '');
  vi.mocked(findShims).mockReturnValue([2]);
  // A shim whose bundle folder was deleted.
  const other = join(folder, 'other.sock');
  writeFileSync(other, '');
  vi.mocked(listeningSockets).mockImplementation((pids) => (pids.includes(2) && calls.length === 0 ? [other] : []));
  vi.mocked(childrenOf).mockImplementation((pids) => pids.map((pid) => pid - 1));
  await clear();
  expect(calls).toEqual([...KILL, ['rmdir', '/cgroup', '/cgroup/1']]);
  expect(logged).toEqual([['killing containers that were left behind', { pids: [1] }]]);
  expect([existsSync(socket), existsSync(other)]).toEqual([false, false]);
});

test('a shim without a container is killed without a warning', async () => {
  vi.mocked(findShims).mockReturnValue([2]);
  await clear();
  expect(calls).toEqual([['SIGKILL', 2], ['wait', 5000, 2], ['rmdir']]);
  expect(logged).toEqual([]);
});
