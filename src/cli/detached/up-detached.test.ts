import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { keepSessionEngine } from '../../engine/data-folder/lock-line.ts';
import { recordOf, resolveSettings, writeEngineRecord } from '../../engine/settings.ts';
import { gitCommit, LIFEPOD_VERSION } from '../../engine/version.ts';
import { dataDirOwner, FolderInUseError, isSessionEngine, lockDataDir, UserError } from '../../platform/files.ts';
import { takeOverUnused } from '../session/engine-use.ts';
import { createRecord } from '../session/session-records.ts';
import { runningPid } from './detach.ts';
import { otherBuild, refusalOfRunning } from './up-detached.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-detached-'));
  writeEngineRecord(folder, recordOf(resolveSettings({ dataDir: folder, maxPods: '50' }, undefined), 7000));
});
afterEach(() => rmSync(folder, { recursive: true }));

const USER = { SUDO_UID: '1000', SUDO_GID: '1000' };
const PID = process.pid;
const refusal = (more: object, args: string[] = []) =>
  refusalOfRunning({ dataDir: folder, ...more }, PID, USER, args)?.message;
const SAME = { port: 0, maxPods: '50', podCidr: '10.222.0.0/16' };

test('up --detach is repeated without an error if the engine runs with the same options', () => {
  for (const options of [{}, SAME]) expect(refusal(options)).toBeUndefined();
  const started = ['up', '--log-level', 'debug', '--shutdown-on-stop'];
  expect(refusal({ ...SAME, logLevel: 'debug', shutdownOnStop: true }, started)).toBeUndefined();
});

test('up --detach with other options than those of the running engine names them, and how to stop that engine', () => {
  expect(refusal({ ...SAME, maxPods: '60', logLevel: 'debug' }, ['up', '--log-level', 'info'])).toBe(
    `lifepod is already running in ${folder} (PID ${PID}) with another value of --max-pods, --log-level, which an engine reads when it ` +
      `starts: omit the option, or stop that engine first: 'sudo kill ${PID}' leaves its Pods running, and 'sudo lifepod down --data-dir ${folder}' ends them, too`,
  );
});

test('up --detach of another version than the running one says how to update', () => {
  writeFileSync(join(folder, 'engine.json'), '{"version":"0.0.9"}');
  expect(refusal({})).toBe(
    `lifepod 0.0.9 is running in ${folder} (PID ${PID}): to run ${LIFEPOD_VERSION} instead, type ` +
      `'sudo kill ${PID}', which leaves its Pods running, then 'eval "$(sudo lifepod up --detach --data-dir ${folder})"'`,
  );
});

test('up --detach says that the running engine is another build of the same version, and how to replace it', () => {
  const record = recordOf(resolveSettings({ dataDir: folder }, undefined), 7000);
  writeEngineRecord(folder, { ...record, commit: 'a'.repeat(40) });
  const own = gitCommit()?.slice(0, 12);
  expect(otherBuild(folder, PID, USER)).toBe(
    own &&
      `the running engine was built from commit aaaaaaaaaaaa, this lifepod from ${own}: to run this one instead, type 'sudo kill ${PID}', ` +
        `which leaves its Pods running, then 'eval "$(sudo lifepod up --detach --data-dir ${folder})"'`,
  );
  for (const commit of [undefined, gitCommit()]) {
    writeEngineRecord(folder, { ...record, commit });
    expect(otherBuild(folder, PID, USER)).toBeUndefined();
  }
});

test('up --detach does not rely on an engine that stops with a session', () => {
  expect(refusalOfRunning({ dataDir: folder }, PID, USER, [], true)?.message).toMatch(
    / was started by a session, and stops when its last session ends: wait until then, or use it in the meantime with /,
  );
});

test('a session engine that is kept is locked by the same process as before', () => {
  const lock = lockDataDir(folder, 'session');
  expect([isSessionEngine(folder), dataDirOwner(folder)]).toEqual([true, process.pid]);
  keepSessionEngine(folder, process.pid);
  expect([isSessionEngine(folder), dataDirOwner(folder)]).toEqual([false, process.pid]);
  lock.release();
});

test('a session engine is taken over only if no session uses it, and if it still runs', async () => {
  const lock = lockDataDir(folder, 'session');
  mkdirSync(join(folder, 'sessions'));
  const record = createRecord(folder);
  expect([await takeOverUnused(folder, process.pid), isSessionEngine(folder)]).toEqual([false, true]);
  record.remove();
  expect([await takeOverUnused(folder, process.pid + 1), isSessionEngine(folder)]).toEqual([true, true]);
  expect([await takeOverUnused(folder, process.pid), isSessionEngine(folder)]).toEqual([true, false]);
  lock.release();
});

test('runningPid finds a PID only in the error about a data folder that is in use', () => {
  expect(runningPid(new FolderInUseError('/d', 7))).toBe(7);
  expect(runningPid(new FolderInUseError('/d', undefined))).toBeUndefined();
  expect(runningPid(new UserError('something else'))).toBeUndefined();
});
