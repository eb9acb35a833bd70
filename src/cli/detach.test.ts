import { EventEmitter } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { recordOf, resolveSettings, writeEngineRecord } from '../engine/settings.ts';
import { LIFEPOD_VERSION } from '../engine/version.ts';
import { lockDataDir, UserError } from '../platform/files.ts';
import { createVirtualTimers } from '../platform/virtual-timers.ts';
import { alreadyRunning, startReport } from './detach.ts';
import { stopText } from './up.ts';

function started() {
  const [timers, said, killed] = [createVirtualTimers(), [] as string[], [] as unknown[]];
  const child = Object.assign(new EventEmitter(), { kill: (signal?: unknown) => killed.push(signal) > 0 });
  const report = startReport(child as never, timers, (why) => said.push(why));
  return { timers, said, killed, child, report };
}

test('up --detach stops an engine whose node is not ready after 60 s, and reports the reason that the engine gave', async () => {
  const { timers, said, killed, child, report } = started();
  child.emit('message', { waiting: 'no network' });
  timers.advance(59_999);
  expect([said, killed]).toEqual([['no network'], []]);
  timers.advance(1);
  expect(killed).toEqual(['SIGTERM']);
  child.emit('message', { error: 'stopped by SIGTERM' });
  expect(await report).toEqual({ error: 'the node is not ready after 60 s: no network' });
});

test('up --detach waits longer than 60 s for an engine without a report, and stops it when it reports that its node is not ready', async () => {
  const { timers, killed, child, report } = started();
  timers.advance(120_000);
  expect(killed).toEqual([]);
  child.emit('message', { waiting: 'no network' });
  expect(killed).toEqual(['SIGTERM']);
  child.emit('exit', 1);
  expect(await report).toEqual({ error: 'the node is not ready after 60 s: no network' });
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

test('up --detach of an engine that runs already says how to use it, how to stop it, which options have no effect, and how to update it', () => {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-detach-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const lock = lockDataDir(folder);
  onTestFinished(() => lock.release());
  let refusal: unknown;
  try {
    lockDataDir(folder);
  } catch (error) {
    refusal = error;
  }
  const message = (more: object): string =>
    (alreadyRunning(refusal, { dataDir: folder, ...more }, { SUDO_UID: '1000' }) as Error).message;
  const advice =
    `lifepod is already running in ${folder} (PID ${process.pid}): 'eval "$(sudo lifepod kubeconfig --data-dir ${folder})"' sets KUBECONFIG ` +
    `for it; to stop it, 'sudo kill ${process.pid}' leaves its Pods running, and 'sudo lifepod down --data-dir ${folder}' ends them, too`;
  expect(message({})).toBe(advice);
  writeEngineRecord(folder, recordOf(resolveSettings({ dataDir: folder, maxPods: '50' }, undefined), 7000));
  const same = { port: 0, maxPods: '50', podCidr: '10.222.0.0/16' };
  expect(message(same)).toBe(advice);
  expect(message({ ...same, maxPods: '60', logLevel: 'debug', shutdownOnStop: true })).toBe(
    `${advice}; --max-pods, --log-level, --shutdown-on-stop: not applied, because an engine reads its options when it starts`,
  );
  writeFileSync(join(folder, 'engine.json'), '{"version":"0.0.9"}');
  expect(message({})).toBe(
    `lifepod 0.0.9 is running in ${folder} (PID ${process.pid}): to run ${LIFEPOD_VERSION} instead, type ` +
      `'sudo kill ${process.pid}', which leaves its Pods running, then 'eval "$(sudo lifepod up --detach --data-dir ${folder})"'`,
  );
  const other = new UserError('something else');
  expect(alreadyRunning(other, { dataDir: folder }, {})).toBe(other);
});

test('an engine that stops says whether Pods continue to run, and how to continue', () => {
  expect(stopText('pods-run', '/d', { SUDO_UID: '1000' })).toBe(
    `lifepod has stopped, and Pods continue to run: 'sudo lifepod up --data-dir /d' manages them again, and 'sudo lifepod down --data-dir /d' ends them`,
  );
  expect(stopText('node-shut-down', '/d', {})).toBe(
    `lifepod has shut down the node and stopped: 'lifepod up --data-dir /d' starts it again`,
  );
  expect(stopText('pods-ended', '/d', {})).toBe('lifepod has stopped');
});
