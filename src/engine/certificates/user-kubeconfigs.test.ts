import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { silentLog } from '../../platform/silent-log.ts';
import {
  copyKubeconfigFor,
  copyKubeconfigs,
  dataDirOfCopy,
  dataDirsOf,
  findUser,
  invokingUser,
  removeUserKubeconfigs,
  userKubeconfigPath,
} from './user-kubeconfigs.ts';

// Root can give a file to any user. Other users, who can run this test too, can give a file only to themselves.
const isRoot = process.geteuid?.() === 0;
const jane = {
  uid: isRoot ? 54_321 : (process.getuid?.() ?? 0),
  gid: isRoot ? 54_322 : (process.getgid?.() ?? 0),
  name: 'jane',
};

let folder: string;
let dataDir: string;
let runFolder: string;
let path: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'lifepod-users-')));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  dataDir = join(folder, 'data');
  runFolder = join(folder, 'run');
  mkdirSync(dataDir);
  writeFileSync(join(dataDir, 'kubeconfig'), 'one');
  path = userKubeconfigPath(dataDir, jane.uid, runFolder);
});

const find = (reference: string) => (reference === '1000' || reference === 'jane' ? { ...jane, uid: 1000 } : undefined);

test.each<[string, NodeJS.ProcessEnv, string | undefined]>([
  ['sudo', { SUDO_UID: '1000', SUDO_GID: '100', SUDO_USER: 'jane' }, '1000:100 jane'],
  ['sudo without a group', { SUDO_UID: '1000' }, `1000:${jane.gid} jane`],
  ['sudo by root', { SUDO_UID: '0', SUDO_GID: '0', DOAS_USER: 'jane' }, undefined],
  ['sudo with a UID that is not a number', { SUDO_UID: '../1', SUDO_GID: '1' }, undefined],
  ['sudo by an unknown user without a group', { SUDO_UID: '5' }, undefined],
  ['doas', { DOAS_USER: 'jane' }, `1000:${jane.gid} jane`],
  ['pkexec', { PKEXEC_UID: '1000' }, `1000:${jane.gid} jane`],
  ['an unknown user', { DOAS_USER: 'joe' }, undefined],
  ['no other user', {}, undefined],
])('the invoking user of %s is found', (_, env, expected) => {
  const found = invokingUser(env, find, true);
  expect(found && `${found.uid}:${found.gid} ${found.name}`).toBe(expected);
});

test('a process that sudo has started for a user other than root has no invoking user', () => {
  expect(invokingUser({ SUDO_UID: '1000', SUDO_GID: '100', SUDO_USER: 'jane' }, find, false)).toBeUndefined();
});

test('users are found by name and by UID', () => {
  const root = { uid: 0, gid: 0, name: 'root' };
  expect([findUser('root'), findUser('0'), findUser('no-such-user')]).toEqual([root, root, undefined]);
});

test('a copy belongs to its user, others cannot read it, and only the owner of the folder can change the folder', () => {
  expect(copyKubeconfigFor(dataDir, jane, runFolder)).toBe(path);
  expect(readFileSync(path, 'utf8')).toBe('one');
  expect(statSync(path)).toMatchObject({ uid: jane.uid, gid: jane.gid });
  expect(statSync(path).mode & 0o7777).toBe(0o600);
  for (const each of [runFolder, dirname(path)]) {
    expect(statSync(each).uid).toBe(process.geteuid?.());
    expect(statSync(each).mode & 0o7777).toBe(0o755);
  }
});

test('a copy replaces the earlier file, and changes no file that the user has linked to it', () => {
  const other = join(folder, 'other');
  copyKubeconfigFor(dataDir, jane, runFolder);
  linkSync(path, other);
  writeFileSync(path, 'written by the user');
  chmodSync(path, 0o666);
  writeFileSync(join(dataDir, 'kubeconfig'), 'two');
  copyKubeconfigs(dataDir, undefined, silentLog, runFolder);
  expect([readFileSync(path, 'utf8'), readFileSync(other, 'utf8')]).toEqual(['two', 'written by the user']);
  expect(statSync(path).mode & 0o7777).toBe(0o600);
});

test('a symbolic link in place of a copy is replaced, and its target is not changed', () => {
  const target = join(folder, 'target');
  writeFileSync(target, 'kept');
  copyKubeconfigFor(dataDir, jane, runFolder);
  rmSync(path);
  for (const link of [path, `${path}.new`]) symlinkSync(target, link);
  copyKubeconfigFor(dataDir, jane, runFolder);
  expect(lstatSync(path).isFile()).toBe(true);
  expect([readFileSync(path, 'utf8'), readFileSync(target, 'utf8')]).toEqual(['one', 'kept']);
});

test.each<[string, () => void]>([
  ['that others may change', () => mkdirSync(runFolder)],
  ['that is a symbolic link', () => symlinkSync(folder, runFolder)],
  ['that is a file', () => writeFileSync(runFolder, '')],
])('nothing is written to a folder %s', (_, create) => {
  create();
  if (!lstatSync(runFolder).isSymbolicLink()) chmodSync(runFolder, 0o777);
  expect(() => copyKubeconfigFor(dataDir, jane, runFolder)).toThrow(`${runFolder} is not a folder that only root may`);
  // copyKubeconfigs() does not throw, because the engine must start even without a copy.
  copyKubeconfigs(dataDir, jane, silentLog, runFolder);
  expect(existsSync(path)).toBe(false);
});

test('all copies of an engine are removed together, and those of other engines remain', () => {
  const other = join(folder, 'other-data');
  mkdirSync(other);
  writeFileSync(join(other, 'kubeconfig'), 'other');
  copyKubeconfigFor(dataDir, jane, runFolder);
  copyKubeconfigFor(other, jane, runFolder);
  removeUserKubeconfigs(dataDir, runFolder);
  expect(existsSync(path)).toBe(false);
  expect(readFileSync(userKubeconfigPath(other, jane.uid, runFolder), 'utf8')).toBe('other');
  removeUserKubeconfigs(other, runFolder);
  removeUserKubeconfigs(other, runFolder);
  expect(existsSync(runFolder)).toBe(false);
});

test('a copy leads to the data folder of its engine', () => {
  const me = process.geteuid?.() ?? 0;
  const read = (file = path, owner = me) => dataDirOfCopy(file, runFolder, owner);
  expect([read(), dataDirsOf(jane.uid, runFolder, me)]).toEqual([undefined, []]);
  copyKubeconfigFor(dataDir, jane, runFolder);
  expect([read(), read(join(dirname(path), '7.kubeconfig'))]).toEqual([dataDir, dataDir]);
  expect([dataDirsOf(jane.uid, runFolder, me), dataDirsOf(7, runFolder, me)]).toEqual([[dataDir], []]);
  const file = join(dirname(path), 'data-dir');
  expect(statSync(file).mode & 0o7777).toBe(0o644);
  expect([read(file), read(join(dataDir, '7.kubeconfig')), read(path, me + 1)]).toEqual(Array(3).fill(undefined));
});

test.each<[string, (file: string) => void]>([
  ['others may write', (file) => chmodSync(file, 0o666)],
  ['contains another folder', (file) => writeFileSync(file, `${folder}\n`)],
  [
    'is a symbolic link',
    (file) => {
      rmSync(file);
      writeFileSync(join(folder, 'elsewhere'), `${dataDir}\n`);
      symlinkSync(join(folder, 'elsewhere'), file);
    },
  ],
])('the path of a data folder is not believed if the file with it %s, until the next start', (_, change) => {
  const me = process.geteuid?.() ?? 0;
  copyKubeconfigFor(dataDir, jane, runFolder);
  change(join(dirname(path), 'data-dir'));
  expect(dataDirOfCopy(path, runFolder, me)).toBeUndefined();
  copyKubeconfigs(dataDir, undefined, silentLog, runFolder);
  expect(dataDirOfCopy(path, runFolder, me)).toBe(dataDir);
});
