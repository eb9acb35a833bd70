import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Node } from '../../api/generated/types.ts';
import { lockForStart } from '../../engine/data-folder/lock-line.ts';
import { recordOf, resolveSettings, writeEngineRecord } from '../../engine/settings.ts';
import { formatTime } from '../../machinery/time.ts';
import { lockDataDir } from '../../platform/files.ts';
import { notRunning } from '../service/not-running.ts';
import { readEngine } from './read-engine.ts';

const NOW = Date.UTC(2026, 0, 31, 12);

test.each<[string, string | undefined, RegExp]>([
  [
    'has no folder',
    undefined,
    /^lifepod is not running: there is no folder (\S+): start it with '(?:eval "\$\((?:sudo|doas|pkexec) )?lifepod up --detach --data-dir \1(?:\)")?', or name its data folder with --data-dir$/,
  ],
  [
    'has never run',
    '',
    /^lifepod has never run in (\S+): start it with '(?:eval "\$\((?:sudo|doas|pkexec) )?lifepod up --detach --data-dir \1(?:\)")?', or name /,
  ],
  [
    'has ended its Pods',
    'down',
    /^lifepod is not running in (\S+): start it with '(?:eval "\$\((?:sudo|doas|pkexec) )?lifepod up --detach --data-dir \1(?:\)")?'$/,
  ],
  ['was killed, and whose Pods have ended', 'up', /^lifepod is not running in (\S+): start it with '[^']+'$/],
])('an engine that %s is reported in one sentence', async (_, state, sentence) => {
  const folder = join(scratch(), 'data');
  if (state !== undefined) mkdirSync(folder);
  if (state) writeFileSync(join(folder, 'engine.json'), JSON.stringify({ state }));
  await expect(readEngine(folder, NOW)).rejects.toThrow(sentence);
});

test('a folder with files of other programs is not advised for an engine', async () => {
  const folder = scratch();
  mkdirSync(join(folder, 'jane'));
  const sentence = `the folder ${folder} is not empty, and is not a data folder of lifepod (it contains jane): choose another --data-dir, `;
  await expect(readEngine(folder, NOW)).rejects.toThrow(sentence);
  expect(notRunning(folder)).toContain(sentence);
});

test('an engine that is starting is reported in one sentence', async () => {
  const folder = scratch();
  const lock = lockForStart(folder, 'engine');
  onTestFinished(() => lock.release());
  const link = join(scratch(), 'link');
  symlinkSync(folder, link);
  // The processes and the network of an engine are found by the real path of its data folder.
  for (const given of [folder, link])
    await expect(readEngine(given, NOW)).rejects.toThrow(
      `lifepod is starting in ${folder} (PID ${process.pid}): try again when it is ready`,
    );
});

test.each([
  ['is not checked while the engine is young and its node has not reported that it is ready', -60_000, 5_000, false],
  ['is checked as soon as the node of the engine has reported that it is ready', -2_000, 5_000, true],
  ['is checked when the engine is old', -600_000, 61_000, true],
])('the cluster DNS %s', async (_, reported, ageMillis, isChecked) => {
  const folder = scratch();
  const lock = lockDataDir(folder);
  onTestFinished(() => lock.release());
  const record = recordOf(resolveSettings({ dataDir: folder, nodeName: 'n' }, undefined), 7000);
  writeEngineRecord(folder, record);
  writeFileSync(join(folder, 'kubeconfig'), '');
  const ready = { type: 'Ready', status: 'True', lastHeartbeatTime: formatTime(NOW + reported) };
  const node: Node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' }, status: { conditions: [ready] } };
  const { troubles } = await readEngine(folder, NOW, () => ageMillis);
  const messages = (await troubles([node])).map(({ message }) => message);
  expect(messages.some((each) => each.startsWith('the cluster DNS does not run'))).toBe(isChecked);
});

function scratch(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'lifepod-status-')));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
