import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chownSync,
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { lockDataDir, lockPath } from '../../platform/files.ts';
import { DEFAULT_DATA_DIR } from '../settings.ts';
import { engineProcesses, engineState, hasLockOpen, lostEngines, requireLocalEngine } from './engine-processes.ts';

const MAIN = '/opt/lifepod/src/cli/main.ts';
const INIT = { pid: 1, args: ['/sbin/init', ''] };
const engine = (pid: number, ...args: string[]) => ({ pid, args: ['node', '--flag', MAIN, 'up', ...args, ''] });
const unseen = (): undefined => undefined;

test('engines are found by their command lines', () => {
  const processes = [
    INIT,
    engine(2, '--data-dir', '/nonexistent/d'),
    engine(3, '--data-dir=/nonexistent/e', '--port', '0'),
    engine(4),
    engine(5, '--data-dir', 'near'),
    engine(6, '--detach', '--data-dir', '/nonexistent/f'),
    { pid: 7, args: ['node', MAIN, 'down', ''] },
    { pid: 8, args: ['less', 'up', ''] },
  ];
  expect(engineProcesses(processes, () => '/nonexistent')).toEqual([
    { pid: 2, dataDir: '/nonexistent/d' },
    { pid: 3, dataDir: '/nonexistent/e' },
    { pid: 4, dataDir: DEFAULT_DATA_DIR },
    { pid: 5, dataDir: '/nonexistent/near' },
  ]);
});

test.each([
  ['running', [INIT, engine(2, '--data-dir', '/nonexistent/d')]],
  ['running', [engine(2, '--data-dir', '/nonexistent/d')]],
  ['stopped', [INIT, engine(2)]],
  ['unknown', [engine(2)]],
  ['unknown', [{ pid: 1, args: [''] }]],
  ['unknown', [INIT, engine(2, '--data-dir', 'd')]],
])('an engine is %s by the processes %j', (state, processes) => {
  expect(engineState('/nonexistent/d', processes, unseen)).toBe(state);
});

test('an engine whose data folder was deleted is found by its lock', () => {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-lost-'));
  const lock = lockDataDir(folder);
  try {
    expect(lostEngines(folder, [process.pid])).toEqual([]);
    rmSync(folder, { recursive: true });
    expect(lostEngines(folder, [process.pid])).toEqual([process.pid]);
    expect(lostEngines(`${folder}-beside`, [process.pid])).toEqual([]);
  } finally {
    lock.release();
  }
  expect(lostEngines(folder, [process.pid])).toEqual([]);
});

const isRoot = process.geteuid?.() === 0;
/** A user ID without an entry on this machine. */
const USER = 54_321;

test('a file whose name looks like that of a deleted lock does not count as a lock', () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'lifepod-lost-')));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const fd = openSync(`${lockPath(folder)} (deleted)`, 'w');
  onTestFinished(() => closeSync(fd));
  expect(existsSync(lockPath(folder))).toBe(false);
  expect(lostEngines(folder, [process.pid])).toEqual([]);
});

test.runIf(isRoot).each([
  ['the process of a user', USER, 0],
  ['a process with a lock that a user has created', 0, USER],
])('%s does not count as an engine whose data folder was deleted', async (_, uid, owner) => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'lifepod-lost-')));
  writeFileSync(lockPath(folder), '');
  chownSync(lockPath(folder), owner, owner);
  const lock = openSync(lockPath(folder), 'r');
  rmSync(folder, { recursive: true });
  const child = spawn('/bin/sh', ['-c', 'read line'], { uid, gid: uid, stdio: ['pipe', 'ignore', 'ignore', lock] });
  closeSync(lock);
  const exited = once(child, 'exit');
  const pid = child.pid ?? 0;
  expect(readlinkSync(`/proc/${pid}/fd/3`)).toBe(`${lockPath(folder)} (deleted)`);
  expect(lostEngines(folder, [pid])).toEqual([]);
  child.stdin?.end();
  await exited;
  expect(lostEngines(folder, [pid])).toEqual([]);
});

test('the PID of an engine in a container, which means another process or none here, is refused', () => {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-elsewhere-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  expect(hasLockOpen(folder, process.pid)).toBe(true);
  const lock = lockDataDir(folder);
  requireLocalEngine(folder, process.pid);
  // The process 1 may have files that not even root may see.
  for (const pid of [process.ppid, 1, 2 ** 22 + 1]) {
    expect(hasLockOpen(folder, pid)).toBe(false);
    writeFileSync(lockPath(folder), `${pid} engine\n`);
    expect(() => requireLocalEngine(folder, pid)).toThrow(
      `the engine of ${folder} runs elsewhere, for example in a container that has the folder as a volume: type this command there`,
    );
    // The lock has another PID than the given one, so the engine with the given PID has ended.
    requireLocalEngine(folder, pid + 1);
  }
  lock.release();
  requireLocalEngine(folder, process.ppid);
});
