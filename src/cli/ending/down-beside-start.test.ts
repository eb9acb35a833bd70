import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { lockForStart, recordStarted } from '../../engine/data-folder/lock-line.ts';
import { kubeconfigPath, recordOf, resolveSettings, writeEngineRecord } from '../../engine/settings.ts';
import { realFolder } from '../../platform/files.ts';
import { down } from '../down.ts';

test('lifepod down waits until an engine has started, because its kubeconfig is that of the engine before', async () => {
  const folder = realFolder(mkdtempSync(join(tmpdir(), 'lifepod-down-')));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeEngineRecord(folder, recordOf(resolveSettings({ dataDir: folder, nodeName: 'n' }, undefined), 1));
  const lock = lockForStart(folder, 'engine');
  onTestFinished(() => lock.release());
  const waits = Promise.withResolvers<string>();
  const ended = down(folder, waits.resolve);
  expect(await waits.promise).toBe(`waiting until the engine (PID ${process.pid}) has started`);
  recordStarted(folder);
  // The engine of this test writes no kubeconfig.
  await expect(ended).rejects.toThrow(`${kubeconfigPath(folder)} is missing, so the running engine`);
});
