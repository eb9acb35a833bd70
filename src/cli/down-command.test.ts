import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { recordStopping } from '../engine/data-folder/lock-line.ts';
import { lockDataDir } from '../platform/files.ts';
import { gracePeriodOf, sameCommand, stateText } from './down-command.ts';
import { parseGracePeriod } from './grace-period.ts';

test.each(['', '-1', '1.5', '30s', '1e3', '99999999999', '4000000000', 'soon'])(
  '--grace-period %j is refused with what to give',
  (text) => {
    expect(() => parseGracePeriod(text)).toThrow('give whole seconds, such as 30');
  },
);

test.each([
  [{}, undefined],
  [{ now: true }, 1],
  [{ gracePeriod: parseGracePeriod('0') }, 1],
  [{ gracePeriod: parseGracePeriod('45') }, 45],
])('the options %j give the grace period %j', (options, seconds) => {
  expect(gracePeriodOf({ dataDir: '/d', ...options })).toBe(seconds);
});

test.each([
  [{}, 'down'],
  [{ now: true }, 'down'],
  [{ uninstallService: true }, 'down --uninstall-service'],
])('after an interruption of a command with the options %j, %s is to be repeated', (options, command) => {
  expect(sameCommand({ dataDir: '/d', ...options })).toBe(command);
});

test('after an interruption, down says that Pods continue to end only if an engine runs', () => {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-down-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  expect(stateText(folder, () => true)).toBe('no engine is running, but Pods may be');
  expect(stateText(folder, () => false)).toBe('no engine is running');
  const lock = lockDataDir(folder, 'engine');
  expect(stateText(folder)).toBe('Pods that are ending continue to end');
  recordStopping(folder);
  expect(stateText(folder)).toBe('the engine is stopping');
  lock.release();
});
