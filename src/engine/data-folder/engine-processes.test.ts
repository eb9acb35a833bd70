import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
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
