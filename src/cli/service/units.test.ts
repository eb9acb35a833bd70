import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { findProgram, runCommand } from '../../platform/processes.ts';
import { dataDirOf, ENGINE_UNIT, nodeFolderFor, SHUTDOWN_UNIT, UNITS, unitsOf } from './units.ts';

let folder: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'lifepod-units-')));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const service = {
  launcher: '/usr/lib/node_modules/lifepod/bin/lifepod',
  dataDir: '/var/lib/lifepod',
  graceSeconds: 30,
};
const linesOf = (text: string, key: string): string[] => text.split('\n').filter((line) => line.startsWith(`${key}=`));

test('the units run lifepod of this installation on the data folder, and give the Pods their grace period at a shutdown', () => {
  const units = unitsOf({ ...service, logLevel: 'warn', logFormat: 'json' });
  expect(linesOf(units[ENGINE_UNIT], 'ExecStart')).toEqual([
    'ExecStart=/usr/lib/node_modules/lifepod/bin/lifepod up --data-dir /var/lib/lifepod --log-level warn --log-format json',
  ]);
  expect(linesOf(units[SHUTDOWN_UNIT], 'ExecStop')).toEqual([
    'ExecStop=/usr/lib/node_modules/lifepod/bin/lifepod shutdown-node --data-dir /var/lib/lifepod',
  ]);
  // systemd prints the description also when it starts and finishes the unit at boot, where no Pod ends.
  expect(linesOf(units[SHUTDOWN_UNIT], 'Description')).toEqual([
    'Description=shutdown guard of lifepod, which ends the Pods when the machine shuts down',
  ]);
  expect(linesOf(units[SHUTDOWN_UNIT], 'TimeoutStopSec')).toEqual(['TimeoutStopSec=90']);
  expect(UNITS.map((name) => dataDirOf(units[name]))).toEqual(['/var/lib/lifepod', '/var/lib/lifepod']);
});

test('systemd waits without a limit until lifepod reports that its API listens', () => {
  const text = unitsOf(service)[ENGINE_UNIT];
  const values = ['Type', 'NotifyAccess', 'TimeoutStartSec'].flatMap((key) => linesOf(text, key));
  expect(values).toEqual(['Type=notify', 'NotifyAccess=all', 'TimeoutStartSec=infinity']);
});

test('systemd does not wait for a report if the machine lacks the program that sends it', () => {
  const text = unitsOf({ ...service, isSilent: true })[ENGINE_UNIT];
  const values = ['Type', 'NotifyAccess', 'TimeoutStartSec'].flatMap((key) => linesOf(text, key));
  expect(values).toEqual(['Type=exec']);
});

test('systemd does not restart an engine that was ended during its start', () => {
  expect(linesOf(unitsOf(service)[ENGINE_UNIT], 'SuccessExitStatus')).toEqual(['SuccessExitStatus=143']);
});

test('dataDirOf returns undefined for a unit that lifepod has not written', () => {
  expect(dataDirOf('[Unit]\nAfter=containerd.service\n')).toBeUndefined();
  expect(dataDirOf('')).toBeUndefined();
});

test('paths with spaces, quotes, percent and dollar signs are single words in the units', () => {
  const text = unitsOf({ ...service, dataDir: '/srv/50% "of"\\$HOME' })[ENGINE_UNIT];
  expect(text).toContain(' --data-dir "/srv/50%% \\"of\\"\\\\$$HOME"\n');
});

test('the units name the folder of a Node.js that is not on the PATH of systemd', () => {
  for (const name of UNITS) {
    expect(linesOf(unitsOf(service)[name], 'Environment')).toEqual([]);
    expect(linesOf(unitsOf({ ...service, nodeFolder: '/root/.nvm/v24/bin' })[name], 'Environment')).toEqual([
      'Environment=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/root/.nvm/v24/bin',
    ]);
  }
});

test.each([
  ['in the node_modules of lifepod', 'lib/node_modules/lifepod/node_modules/node/bin/node', true],
  ['in the package node next to lifepod', 'lib/node_modules/node/bin/node', true],
  ['that installed lifepod', 'bin/node', true],
  ['elsewhere', 'elsewhere/node', false],
])('nodeFolderFor knows whether the launcher finds the Node.js %s', (_, path, isFound) => {
  const node = join(folder, 'versions/node');
  for (const each of [node, join(folder, path)]) mkdirSync(dirname(each), { recursive: true });
  writeFileSync(node, '');
  symlinkSync(node, join(folder, path));
  const launcher = join(folder, 'lib/node_modules/lifepod/bin/lifepod');
  expect(nodeFolderFor(launcher, node)).toBe(isFound ? undefined : dirname(node));
});

test('systemd accepts the units', async () => {
  const verify = findProgram('systemd-analyze');
  const launcher = join(folder, 'bin with space/lifepod');
  mkdirSync(dirname(launcher));
  writeFileSync(launcher, '#!/bin/sh\n', { mode: 0o755 });
  const units = unitsOf({ ...service, launcher, dataDir: '/srv/50% of it', nodeFolder: folder });
  const paths = UNITS.map((name) => join(folder, name));
  UNITS.forEach((name, index) => void writeFileSync(paths[index] ?? '', units[name]));
  // A machine without systemd cannot verify units.
  if (verify === undefined) return;
  const { stdout, stderr } = await runCommand(verify, ['verify', '--man=no', ...paths]);
  // systemd-analyze also reports problems of other units of the machine.
  const about = `${stdout}${stderr}`.split('\n').filter((line) => line.includes('lifepod'));
  expect(about).toEqual([]);
});
