import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import type { Log } from '../../platform/platform.ts';
import { notifyListening, takeNotifySocket } from './notify.ts';

const warnings: unknown[][] = [];
const log = { warn: (...line: unknown[]) => void warnings.push(line) } as unknown as Log;
beforeEach(() => {
  warnings.length = 0;
});

function program(script: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-notify-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'systemd-notify'), `#!/bin/sh\n${script}\n`);
  chmodSync(join(folder, 'systemd-notify'), 0o755);
  vi.stubEnv('PATH', `${folder}:${process.env['PATH']}`);
  onTestFinished(() => void vi.unstubAllEnvs());
  return folder;
}

test('takeNotifySocket removes the variable, so that no other program reports the state of the service', () => {
  const env = { NOTIFY_SOCKET: '/run/systemd/notify', OTHER: 'x' };
  expect(takeNotifySocket(env)).toBe('/run/systemd/notify');
  expect(env).toEqual({ OTHER: 'x' });
  expect(takeNotifySocket(env)).toBeUndefined();
  expect(takeNotifySocket({ NOTIFY_SOCKET: '' })).toBeUndefined();
});

test('notifyListening reports the engine, and not the program systemd-notify, as the main process', async () => {
  const folder = program('echo "$NOTIFY_SOCKET $*" >"$(dirname "$0")/said"');
  await notifyListening('/run/systemd/notify', log);
  expect(readFileSync(join(folder, 'said'), 'utf8')).toBe(`/run/systemd/notify --ready --pid=${process.pid}\n`);
  expect(warnings).toEqual([]);
});

test('notifyListening only logs that systemd-notify fails', async () => {
  program('echo "no access" >&2; exit 1');
  await notifyListening('/run/systemd/notify', log);
  expect(warnings).toEqual([
    [
      expect.stringMatching(
        /^lifepod could not report to systemd that it is ready; .*: install systemd-notify, then type /,
      ),
      { error: expect.stringContaining('no access') },
    ],
  ]);
});
