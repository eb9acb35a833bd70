import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { DEFAULT_DATA_DIR } from '../../engine/settings.ts';
import { dataFolderOf, foldersOfUser, orOtherFolder, readableFolders } from './engine-folders.ts';

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'lifepod-folders-')));
afterAll(() => rmSync(folder, { recursive: true }));
for (const name of ['engine', 'other']) {
  mkdirSync(join(folder, name));
  writeFileSync(join(folder, name, 'kubeconfig'), '');
}
const engine = join(folder, 'engine');
writeFileSync(join(engine, 'engine.json'), '{}');
const USER = { SUDO_UID: '1000', SUDO_GID: '1000', SUDO_USER: 'jane' };

test('the data folder of a kubeconfig is the one that contains it, or the one of a copy', () => {
  const ofCopy = (path: string) => (path === '/copy' ? '/d' : undefined);
  const read = (...paths: string[]) => dataFolderOf(paths, ofCopy);
  expect([read(join(engine, 'kubeconfig')), read('/copy')]).toEqual([engine, '/d']);
  expect([read(), read('/copy', '/x'), read(join(folder, 'other', 'kubeconfig')), read(join(engine, 'x'))]).toEqual(
    Array(4).fill(undefined),
  );
});

test('the data folder of a link to a kubeconfig is that of the kubeconfig', () => {
  const [own, copy, broken] = ['own', 'copy', 'broken'].map((name) => join(folder, `${name}-link`)) as [
    string,
    string,
    string,
  ];
  symlinkSync(join(engine, 'kubeconfig'), own);
  symlinkSync(join(folder, 'other/kubeconfig'), copy);
  symlinkSync(join(folder, 'none'), broken);
  const ofCopy = (path: string) => (path === join(folder, 'other/kubeconfig') ? '/d' : undefined);
  expect([own, copy, broken].map((path) => dataFolderOf([path], ofCopy))).toEqual([engine, '/d', undefined]);
});

test('the folders of a user are those of KUBECONFIG, and those of the copies of the user who types sudo', () => {
  const ofCopies = (uid: number) => (uid === 1000 ? [engine, '/d'] : []);
  expect(foldersOfUser(USER, ofCopies, 0)).toEqual([engine, '/d']);
  expect(foldersOfUser({ ...USER, KUBECONFIG: `:${join(engine, 'kubeconfig')}:/x` }, ofCopies, 0)).toEqual([
    engine,
    '/d',
  ]);
  expect(foldersOfUser({ KUBECONFIG: join(engine, 'kubeconfig') }, () => [])).toEqual([engine]);
});

test('with sudo -u, the folders are those of the user who runs the command, not of the one who has typed sudo', () => {
  expect(foldersOfUser(USER, (uid) => [`/of-${uid}`], 1001)).toEqual(['/of-1001']);
});

test('root can read the kubeconfigs of all engines that run, but a process that only looks like an engine is not one', () => {
  const running = () => [
    { pid: 7, dataDir: '/d' },
    { pid: 8, dataDir: '/other' },
    { pid: 9, dataDir: '/claimed' },
  ];
  const locked = new Map([
    [7, '/d'],
    [8, '/other'],
  ]);
  const read = (isRoot: boolean) =>
    readableFolders(
      USER,
      () => ['/copy', '/d'],
      isRoot,
      running,
      (pid) => locked.get(pid),
    );
  expect(read(true)).toEqual(['/copy', '/d', '/other']);
  expect(read(false)).toEqual(['/copy', '/d']);
});

test('a folder with a named pipe in place of the lock is not read', () => {
  const prepared = join(folder, 'prepared');
  mkdirSync(prepared);
  execFileSync('mkfifo', [join(prepared, 'lock')]);
  const running = () => [{ pid: process.pid, dataDir: prepared }];
  expect(readableFolders({}, () => [], true, running)).toEqual([]);
});

test('a command that finds no engine in the default folder names the other engines that the user may mean', () => {
  expect(orOtherFolder(DEFAULT_DATA_DIR, USER, () => ['/d'])).toBe("; add '--data-dir /d' to use another engine");
  expect(orOtherFolder('/given', USER, () => ['/d'])).toBe('');
});
