import { EventEmitter } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { recordStopping } from '../../engine/data-folder/lock-line.ts';
import { DEFAULT_DATA_DIR } from '../../engine/settings.ts';
import { lockDataDir } from '../../platform/files.ts';
import type { LogOptions } from '../../platform/node-js.ts';
import type { Log } from '../../platform/platform.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { InterruptedError } from '../signals.ts';
import { type EngineStop, outputOf, printReady, stopText } from '../up.ts';
import { endText, interruption, startError, startReport, startUnlessRunning } from './detach.ts';
import { interruptedStart, withRemains } from './interrupted-start.ts';

function started(isHalted = false) {
  const [timers, said, killed] = [createVirtualTimers(), [] as string[], [] as unknown[]];
  const child = Object.assign(new EventEmitter(), { pid: 7, kill: (signal?: unknown) => killed.push(signal) > 0 });
  const report = startReport(
    child as never,
    timers,
    (why) => said.push(why),
    () => isHalted,
  );
  return { timers, said, killed, child, report };
}

test('no process is started while an engine runs', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'lifepod-detach-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true }));
  const lock = lockDataDir(dataDir);
  onTestFinished(() => lock.release());
  expect(await startUnlessRunning({ dataDir }, AbortSignal.abort(new Error('a start')))).toEqual({ pid: process.pid });
  recordStopping(dataDir);
  await expect(startUnlessRunning({ dataDir }, AbortSignal.abort(new Error('a start')))).rejects.toThrow('a start');
});

test('up --detach stops an engine whose node is not ready after 60 s, and reports the reason that the engine gave', async () => {
  const { timers, said, killed, child, report } = started();
  child.emit('message', { waiting: 'no network' });
  timers.advance(59_999);
  expect([said, killed]).toEqual([['no network'], []]);
  timers.advance(1);
  expect(killed).toEqual(['SIGTERM', 'SIGCONT']);
  child.emit('message', { error: 'stopped by SIGTERM' });
  expect(await report).toEqual({ error: 'the node is not ready after 60 s: no network' });
});

test('up --detach waits longer than 60 s for an engine without a report, and stops it when it reports that its node is not ready', async () => {
  const { timers, said, killed, child, report } = started();
  timers.advance(120_000);
  expect([said, killed]).toEqual([['the engine (PID 7) is still starting; Ctrl+C stops it'], []]);
  child.emit('message', { waiting: 'no network' });
  expect(killed).toEqual(['SIGTERM', 'SIGCONT']);
  child.emit('exit', 1);
  expect(await report).toEqual({ error: 'the node is not ready after 60 s: no network' });
});

test('up --detach stops an engine that is suspended after 60 s, and kills it if it does not end', async () => {
  const { timers, said, killed, child, report } = started(true);
  timers.advance(60_000);
  expect(killed).toEqual(['SIGTERM', 'SIGCONT']);
  timers.advance(60_000);
  expect([said, killed]).toEqual([[], ['SIGTERM', 'SIGCONT', 'SIGKILL']]);
  child.emit('exit', null);
  expect(await report).toEqual({
    error: 'the node is not ready after 60 s: the process of the engine (PID 7) was suspended',
  });
});

test('up --detach names the signal or the code with which an engine ended', () => {
  expect(endText({ signalCode: 'SIGKILL', exitCode: null })).toBe('SIGKILL ended the engine');
  expect(endText({ signalCode: null, exitCode: 3 })).toBe('the engine exited with code 3');
});

test('up --detach returns the report of a ready engine, and undefined for an engine that exits without a report', async () => {
  const ready = { ready: { server: 's', nodeName: 'n', startMillis: 1 } };
  const [slow, dead] = [started(), started()];
  slow.child.emit('message', { waiting: 'no network' });
  slow.child.emit('message', ready);
  expect(await slow.report).toEqual(ready);
  slow.timers.advance(60_000);
  expect(slow.killed).toEqual([]);
  dead.child.emit('exit', 1);
  expect(await dead.report).toBeUndefined();
});

test('up --detach says that a running engine continues to run if the command is interrupted', () => {
  const error = new InterruptedError('stopped by SIGINT', 'SIGINT');
  expect(interruption(error, 7)).toMatchObject({
    message: 'interrupted: the engine (PID 7) continues to run',
    exitCode: 130,
  });
});

test('an interrupted start says what remains of an engine that has run before', () => {
  const error = new InterruptedError('stopped by SIGTERM', 'SIGTERM');
  expect(interruptedStart(error, false, '/d', { SUDO_UID: '1000' })).toMatchObject({
    message: `stopped by SIGTERM; no Pods run: 'sudo lifepod up --data-dir /d' starts it again, and 'sudo lifepod down --data-dir /d' removes its network and DNS`,
    exitCode: 143,
  });
});

test('an interrupted start reports the Pods in a container runtime of the machine, unless the engine is stopped or new', () => {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-interrupted-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const error = new InterruptedError('stopped by SIGINT', 'SIGINT');
  const text = () => (withRemains(error, folder, { SUDO_UID: '1000' }) as Error).message;
  expect(text()).toBe('stopped by SIGINT');
  mkdirSync(join(folder, 'pods/one'), { recursive: true });
  const record = (state: string) =>
    writeFileSync(join(folder, 'engine.json'), JSON.stringify({ state, containerRuntimeEndpoint: 'unix:///x' }));
  record('up');
  expect(text()).toMatch(/^stopped by SIGINT; Pods continue to run: 'sudo lifepod up --data-dir /);
  record('down');
  expect(text()).toBe('stopped by SIGINT');
});

test('an engine whose output is the journal names the command that prints its kubeconfig', () => {
  const said: string[] = [];
  const notices = { say: (line: string) => void said.push(line), warn: (line: string) => void said.push(line) };
  printReady('/d', { server: 's', nodeName: 'n', startMillis: 1000, warnings: ['no swap'] }, notices, true);
  expect(said).toEqual([
    expect.stringMatching(/ is ready after 1\.0 s: s, node n$/),
    'no swap',
    expect.stringMatching(
      /^'(?:sudo|doas|pkexec) .*lifepod kubeconfig --data-dir \/d' prints the command that sets KUBECONFIG$/,
    ),
  ]);
});

test('an engine that stops says whether Pods continue to run, and how to continue', () => {
  const text = (end: EngineStop, isService = false): string => stopText(end, '/d', { SUDO_UID: '1000' }, isService);
  expect(text('pods-run')).toBe(
    `lifepod has stopped, and Pods continue to run: 'sudo lifepod up --data-dir /d' manages them again, and 'sudo lifepod down --data-dir /d' ends them`,
  );
  expect(text('no-pods')).toBe(
    `lifepod has stopped, and no Pods run: 'sudo lifepod up --data-dir /d' starts it again, and 'sudo lifepod down --data-dir /d' removes its network and DNS`,
  );
  expect(text('node-shut-down')).toBe(
    `lifepod has shut down the node and stopped: 'sudo lifepod up --data-dir /d' starts it again`,
  );
  expect(text('pods-ended')).toBe('lifepod has stopped');
  // npm has removed the program while the engine ran.
  const removed = { LIFEPOD_PROGRAM: '/gone/bin/lifepod', PATH: '/gone/bin' };
  for (const end of ['pods-run', 'no-pods', 'node-shut-down'] as const)
    expect(stopText(end, '/d', removed, false)).toMatch(
      /'\S*\/gone\/bin\/lifepod (?:up|down) --data-dir \/d' .* \(first install lifepod again, because \/gone\/bin\/lifepod has been removed\)$/,
    );
  expect(text('pods-run', true)).toBe(
    `lifepod has stopped, and Pods continue to run: 'sudo systemctl start lifepod' manages them again, and 'sudo lifepod down --data-dir /d' ends them`,
  );
  expect(text('node-shut-down', true)).toBe(
    `lifepod has shut down the node and stopped: 'sudo systemctl start lifepod' starts it again`,
  );
});

test('the ready and stop lines of an engine with a log in JSON are independent of the log level', () => {
  const lines: string[] = [];
  const logOf = ({ level, format }: LogOptions): Log => ({
    ...silentLog,
    info: (message) => void lines.push(`${level} ${format} ${message}`),
  });
  for (const logLevel of ['debug', 'warn', 'error'] as const)
    outputOf({ dataDir: '/d', logLevel, logFormat: 'json' }, true, logOf).notices.say('ready');
  expect(lines).toEqual(Array(3).fill('info json ready'));
});

test('if another engine prevents a start, the error names the other engines that the user may mean', () => {
  const folders = () => ['/d'];
  const taken = 'port 6443 on 127.0.0.1 is in use by another engine of lifepod: start this one with --port 0';
  expect(startError(taken, DEFAULT_DATA_DIR, {}, folders)).toBe(`${taken}; add '--data-dir /d' to use another engine`);
  expect(startError(taken, '/e', {}, folders)).toBe(taken);
  expect(startError('no space', DEFAULT_DATA_DIR, {}, folders)).toBe('no space');
});
