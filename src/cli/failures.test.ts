import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { NeedsRootError } from '../engine/machine-checks.ts';
import { notFound } from '../machinery/status.ts';
import { FolderInUseError, ForeignFolderError, UserError } from '../platform/files.ts';
import { CommandError } from '../platform/processes.ts';
import { RuntimeCallError } from '../runtime/cri/connection.ts';
import { StorageFullError } from '../store/store.ts';
import { errorLine, failureText } from './failures.ts';

const thrownBy = (action: () => unknown): unknown => {
  try {
    return action();
  } catch (error) {
    return error;
  }
};
const coded = (code: string, path?: string): Error => Object.assign(new Error(code), { code, ...(path && { path }) });

test.each<[unknown, string]>([
  [new UserError('do this'), 'do this'],
  [
    new FolderInUseError('/d', 7),
    'the data folder /d is in use by a running lifepod (PID 7): choose another --data-dir, or stop that engine: ' +
      `'kill 7' leaves its Pods running, and 'lifepod down --data-dir /d' ends them, too`,
  ],
  [notFound({ group: '', resource: 'pods' }, 'web'), 'pods "web" not found'],
  [
    new StorageFullError('/d/store', 'the disk is full', 'free some space', undefined),
    'cannot write to the store in /d/store: the disk is full; free some space',
  ],
  [
    thrownBy(() => writeFileSync('/dev/full', 'x')),
    'a file cannot be written: the disk is full; free some space and try again',
  ],
  [
    coded('EDQUOT', '/d/engine.json'),
    '/d/engine.json cannot be written: the disk quota is exceeded; free some space and try again',
  ],
  [
    coded('EROFS', '/d/lock'),
    '/d/lock cannot be written: the disk is mounted read-only; mount it for writing, or choose another --data-dir',
  ],
  [coded('EACCES', '/d/lock'), '/d/lock cannot be opened: permission denied'],
  [
    Object.assign(coded('ENOENT'), { syscall: 'uv_cwd' }),
    'the current folder no longer exists: change to another folder with cd',
  ],
  [
    new RuntimeCallError('Unavailable', 'connection refused'),
    'the container runtime failed or did not answer: connection refused',
  ],
  [
    new CommandError('nft -f ended with exit code 1: bad\n  ^^^\nrule'),
    'nft -f ended with exit code 1: bad; ^^^; rule',
  ],
  [
    new CommandError('ip link ended with exit code 2: RTNETLINK answers: Operation not permitted'),
    'ip link ended with exit code 2: RTNETLINK answers: Operation not permitted; lifepod needs all capabilities of root, including CAP_NET_ADMIN (see capabilities(7))',
  ],
])('%s becomes the message "%s"', (error, text) => {
  expect(failureText(error, ['status'], true, {})).toBe(text);
});

test.each<[Error, string]>([
  [
    new NeedsRootError('read x', { command: 'other', otherwise: ', or wait' }),
    "only root can read x: type 'other', or wait",
  ],
  [new NeedsRootError(), `only root can run this command: type 'sudo lifepod backup "my file"'`],
  [coded('EACCES', '/d/lock'), `only root can run this command: type 'sudo lifepod backup "my file"'`],
  [coded('EACCES', '/x'), `only root can open /x: type 'sudo lifepod backup "my file"'`],
])('a user who is not root learns the command with sudo from %s', (error, text) => {
  expect(failureText(error, ['backup', 'my file'], false, {})).toBe(text.replaceAll('"', "'"));
});

test('a user whose KUBECONFIG is that of another engine learns the option that selects this engine for root', () => {
  const text = (words: string[]): string => failureText(new NeedsRootError(), words, false, {}, () => ['/d']);
  expect(text(['backup', 'f'])).toBe(
    "only root can run this command: type 'sudo lifepod backup f'; add '--data-dir /d' to use another engine",
  );
  for (const given of [['--data-dir', '/e'], ['--data-dir=/e']])
    expect(text(['backup', 'f', ...given])).toMatch(/^only root can run this command: type '[^']+'$/);
});

test('the command with sudo names the typed path of lifepod if it is not on the PATH', () => {
  const env = { LIFEPOD_PROGRAM: './bin/lifepod', PATH: '/nonexistent' };
  expect(failureText(new NeedsRootError(), ['up'], false, env)).toBe(
    "only root can run this command: type 'sudo ./bin/lifepod up'",
  );
});

test('an error message begins with lifepod once', () => {
  expect(errorLine('lifepod is not running in /d')).toBe('lifepod is not running in /d');
  expect(errorLine('lifepod.yaml does not exist')).toBe('lifepod: lifepod.yaml does not exist');
});

test('the message of an unexpected error contains its stack trace', () => {
  expect(failureText(new TypeError('x is not a function'))).toMatch(
    /^TypeError: x is not a function\n +at .*failures\.test/,
  );
});

test.each([
  new Error('No native build was found for platform=linux arch=x64\n    attempted loading from: /p/node_modules/lmdb'),
  Object.assign(new Error("Cannot find package 'lmdb' imported from /p/dist/a.js"), { code: 'ERR_MODULE_NOT_FOUND' }),
])('an incomplete package, or one for another processor, is reported in one line', (error) => {
  const [first = ''] = error.message.split('\n');
  expect(failureText(error)).toBe(
    `a part of lifepod's program is missing, or is for another kind of processor: install lifepod again (${first})`,
  );
});

test.each<[string, string[], string | undefined]>([
  ['an empty folder', [], undefined],
  ['a folder with files that a user may prepare', ['manifests', 'lost+found'], undefined],
  ['a data folder with other files', ['format-version', '.hidden', 'file'], undefined],
  ['a folder of other files', ['file', 'manifests'], 'file'],
  ['a home folder with only hidden files', ['.profile'], '.profile'],
])("the advice about %s of another user is to make it root's only if it can be a data folder", (_, names, other) => {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-failures-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const name of names) mkdirSync(join(folder, name));
  const advice = 'if you trust its content, run: chown';
  expect(failureText(new ForeignFolderError(folder, advice))).toEqual(
    other === undefined
      ? advice
      : expect.stringContaining(
          `the folder ${folder} is not empty, and is not a data folder of lifepod (it contains ${other})`,
        ),
  );
});
