import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { lockForStart, recordStarted, recordStopping } from '../../engine/data-folder/lock-line.ts';
import { DEFAULT_DATA_DIR, type EngineRecord } from '../../engine/settings.ts';
import { lockDataDir } from '../../platform/files.ts';
import { takeTurn } from '../ending/turns.ts';
import { changingNow, journalCommand, notRunning, podsLeftIn, startCommand, waysToStart } from './not-running.ts';
import { readService, runsAsService, type ServiceState } from './service-state.ts';
import { ENGINE_UNIT, unitsOf } from './units.ts';

const USER = { SUDO_UID: '1000', SUDO_GID: '1000' };

function scratch(): string {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-service-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test.each<[string, string, ServiceState | undefined]>([
  ['activating', 'start', 'starting'],
  ['activating', 'auto-restart', 'failing'],
  ['activating', 'auto-restart-queued', 'failing'],
  ['active', 'running', 'running'],
  ['deactivating', 'stop-sigterm', 'stopped'],
  ['inactive', 'dead', 'stopped'],
  ['failed', 'failed', 'stopped'],
])('the state of a service with ActiveState %s and SubState %s is %s', (active, sub, state) => {
  const folder = scratch();
  writeFileSync(join(folder, ENGINE_UNIT), unitsOf({ launcher: '/l', dataDir: '/d', graceSeconds: 30 })[ENGINE_UNIT]);
  const show = (): string => `MainPID=7\nActiveState=${active}\nSubState=${sub}\n`;
  expect(readService('/d', folder, show)).toEqual({ state, pid: 7 });
  expect(readService('/other', folder, show)).toBeUndefined();
  expect(readService('/d', scratch(), show)).toBeUndefined();
  expect(readService('/d', folder, () => '')).toBeUndefined();
});

test('the service of a data folder is also found by a link to the folder', () => {
  const folder = realpathSync(scratch());
  const [dataDir, link] = [join(folder, 'data'), join(folder, 'link')];
  mkdirSync(dataDir);
  symlinkSync(dataDir, link);
  writeFileSync(join(folder, ENGINE_UNIT), unitsOf({ launcher: '/l', dataDir, graceSeconds: 30 })[ENGINE_UNIT]);
  expect(readService(link, folder, () => 'ActiveState=active\n')?.state).toBe('running');
});

test('systemctl is for an engine that systemd runs, and not for one beside a service that starts again and again', () => {
  const run = (pid: number): boolean => runsAsService('/d', pid, { state: 'starting', pid: 8 });
  expect([run(8), run(7)]).toEqual([true, false]);
  expect(runsAsService('/d', 7, { state: 'failing', pid: 0 })).toBe(false);
});

test.each<[ServiceState | undefined, string]>([
  [undefined, `lifepod is not running in /d: start it with 'eval "$(sudo lifepod up --detach --data-dir /d)"'`],
  ['starting', `lifepod is starting in /d as the service lifepod: try again when it is ready`],
  ['running', `lifepod is starting in /d as the service lifepod: try again when it is ready`],
  [
    'failing',
    `lifepod is not running in /d: the service lifepod has failed, and starts again: 'sudo journalctl -u lifepod' prints its log`,
  ],
  ['stopped', `lifepod is not running in /d: start it with 'sudo systemctl start lifepod'`],
])(
  'an engine that has not locked its folder, with a service that is %s, is reported in one sentence',
  (state, text) => {
    expect(notRunning('/d', USER, state, 0)).toBe(text);
  },
);

test('Pods, DNS and network that remain can be removed only while nothing starts the engine', () => {
  const pods = 2;
  expect(notRunning('/d', USER, 'stopped', pods)).toBe(
    "lifepod is not running in /d, but 2 of its Pods may be: start it with 'sudo systemctl start lifepod', or end them with 'sudo lifepod down --data-dir /d'",
  );
  expect(notRunning('/d', USER, undefined, 0, true)).toBe(
    `lifepod is not running in /d, but its DNS and its network remain: start it with 'eval "$(sudo lifepod up --detach --data-dir /d)"', or remove them with 'sudo lifepod down --data-dir /d'`,
  );
  expect(notRunning('/d', USER, undefined, 'unknown', true)).toMatch(
    /, but its DNS and its network remain, and Pods may be running: start .*, or end and remove all of them with 'sudo lifepod down --data-dir \/d'$/,
  );
  expect(notRunning('/d', USER, undefined, 'unknown', false)).not.toContain('down');
  expect(notRunning('/d', USER, 'running', 2, true, 'the folder was deleted')).toBe('the folder was deleted');
  expect(notRunning('/d', USER, undefined, 0, false, undefined, false, 7)).toBe(
    'lifepod is starting in /d (PID 7): try again when it is ready',
  );
  for (const state of ['starting', 'failing'] as const)
    expect(notRunning('/d', USER, state, pods)).not.toContain('down');
});

test('the Pods that an engine has left are counted also for a user who may not read its record', () => {
  const denied = (): never => {
    throw Object.assign(new Error(), { code: 'EACCES' });
  };
  const processes = ['containerd-shim-runc-v2', 'containerd', 'containerd-shim-runc-v2'].map((name, index) => ({
    pid: index + 2,
    commandLine: [`/bin/${name}`],
  }));
  expect(podsLeftIn('/d', denied, () => processes)).toBe(2);
  expect(podsLeftIn('/d', denied, () => [])).toBe('unknown');
  const record = (given: object) => (): EngineRecord => ({ ...given }) as EngineRecord;
  expect(podsLeftIn('/d', record({ state: 'up' }), () => processes)).toBe(2);
  expect(podsLeftIn('/d', record({ state: 'down' }), () => processes)).toBe(0);
  const folder = scratch();
  mkdirSync(join(folder, 'pods'));
  const foreign = record({ state: 'up', containerRuntimeEndpoint: 'unix:///c' });
  expect(podsLeftIn(folder, foreign, () => [])).toBe(0);
  writeFileSync(join(folder, 'engine.json'), JSON.stringify(foreign()));
  mkdirSync(join(folder, 'pods', 'uid'));
  expect(podsLeftIn(folder, foreign, () => [])).toBe('unknown');
});

test('the ways to start the engine of the default folder end with the other engines that the user may mean', () => {
  const start = `start it with 'eval "$(sudo lifepod up --detach)"'`;
  const isStopped = (folder: string): boolean => folder === '/d';
  const ways = (folders: string[], stopped = isStopped, remove?: string): string =>
    waysToStart(
      DEFAULT_DATA_DIR,
      USER,
      undefined,
      remove,
      () => folders,
      stopped,
      () => undefined,
    );
  expect(ways([])).toBe(start);
  const all = [DEFAULT_DATA_DIR, '/e', '/d'];
  expect(ways(all, () => false)).toBe(`${start}, or add '--data-dir /e' or '--data-dir /d' to use another engine`);
  expect(ways(all)).toBe(`${start}, or add '--data-dir /e' to use another engine`);
  expect(ways(all, isStopped, "end the Pod with 'sudo lifepod down'")).toBe(
    `${start}, or end the Pod with 'sudo lifepod down', or add '--data-dir /e' to use another engine`,
  );
  expect(ways(['/d'])).toBe(
    `${start}, or start the engine in /d with 'eval "$(sudo lifepod up --detach --data-dir /d)"'`,
  );
});

test('the command that starts an engine is that of systemd if a service runs the engine', () => {
  expect(startCommand('/d', USER, 'stopped')).toBe('sudo systemctl start lifepod');
  expect(startCommand('/d', {}, 'stopped', false)).toBe('systemctl start lifepod');
  expect(startCommand('/d', {}, undefined, false)).toBe('lifepod up --detach --data-dir /d');
});

test('an engine is starting or stopping if it has recorded so, and starting if systemd waits for it', () => {
  const folder = scratch();
  expect(changingNow(folder, true, undefined)).toBeUndefined();
  expect(changingNow(folder, true, 'stopped')).toBeUndefined();
  expect(changingNow(folder, true, 'starting')).toContain('as the service lifepod');
  const command = lockDataDir(folder, 'down');
  expect(changingNow(folder)).toBeUndefined();
  command.release();
  const engine = lockForStart(folder, 'engine');
  onTestFinished(() => engine.release());
  const isSaid = (text: string | undefined): void => {
    for (const refuses of [true, false]) expect(changingNow(folder, refuses, undefined)).toBe(text);
  };
  isSaid(`lifepod is starting in ${folder} (PID ${process.pid}): try again when it is ready`);
  recordStarted(folder);
  isSaid(undefined);
  recordStopping(folder);
  isSaid(`lifepod is stopping in ${folder} (PID ${process.pid}): try again when it has stopped`);
});

test('an engine whose remains another process removes is stopping, and needs no command', async () => {
  const folder = scratch();
  expect(notRunning(folder)).toContain('lifepod is not running in');
  const turn = await takeTurn(folder, () => undefined, new AbortController().signal);
  expect(notRunning(folder)).toBe(`lifepod is stopping in ${folder}: try again when it has stopped`);
  turn.release();
});

test('a user who is not root reads the journal with sudo', () => {
  expect(journalCommand({}, false)).toBe('journalctl -u lifepod');
  expect(journalCommand({ SUDO_UID: '1000' })).toBe('sudo journalctl -u lifepod');
});
