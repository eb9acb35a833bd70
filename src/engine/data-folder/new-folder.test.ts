import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { UserError } from '../../platform/files.ts';
import { recordOf, resolveSettings, writeEngineRecord } from '../settings.ts';
import { refuseOtherFiles, refuseUnusableFolder, refuseUnusablePath } from './new-folder.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-new-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
});

const add = (...names: string[]): void => {
  for (const name of names) writeFileSync(join(folder, name), '');
};

test('a folder with files of other programs is refused, and is not changed', () => {
  add('passwd', 'hosts', 'manifests', '.hidden');
  const { mode } = statSync(folder);
  for (const refuse of [refuseOtherFiles, refuseUnusableFolder])
    expect(() => refuse(folder)).toThrow(
      `the folder ${folder} is not empty, and is not a data folder of lifepod (it contains hosts): choose another --data-dir, or, if the ` +
        'folder is meant for lifepod, move other files out of it',
    );
  expect(statSync(folder).mode).toBe(mode);
});

test('an empty folder, a missing one, and what is not a folder are not refused', () => {
  add('file');
  for (const path of [join(folder, 'none'), join(folder, 'file'), join(folder, 'file/below')]) refuseOtherFiles(path);
  rmSync(join(folder, 'file'));
  refuseOtherFiles(folder);
});

test('what the user may put into a new data folder, and what an interrupted first start leaves, is not refused', () => {
  add(
    'lost+found',
    'aquota.user',
    'aquota.group',
    'quota.user',
    '.snapshot',
    'certs.d',
    'manifests',
    'seccomp',
    'encryption',
    'pki',
  );
  add('lifepod.log', 'lifepod.log.1', 'lock', 'sessions', 'format-version.7.new', 'before-restore-20260131T120000Z');
  refuseOtherFiles(folder);
});

test.each<[string, () => void]>([
  ['a version', () => add('format-version')],
  [
    'a store',
    () => {
      mkdirSync(join(folder, 'store'));
      add('store/data.mdb');
    },
  ],
  [
    'the record of an engine',
    () => writeEngineRecord(folder, recordOf(resolveSettings({ dataDir: folder }, undefined), 7000)),
  ],
])('a data folder with %s may contain other files', (_, prepare) => {
  add('audit.log');
  prepare();
  refuseOtherFiles(folder);
});

test.each([
  ['14:30', '14:30', "':'"],
  ['a,b', 'a,b', "','"],
  ['a\\b', 'a\\b', "'\\'"],
  ['100%', '100%', "'%'"],
  ['[x', '[x', "'['"],
  ['new\nline', 'new\\u000aline', 'a control character'],
  ['tab\t', 'tab\\u0009', 'a control character'],
])('a folder below %j is refused', (name, shown, character) => {
  const refusal = (path: string, remedy: string): UserError =>
    new UserError(`containers cannot run in ${path}, because the path contains ${character}: ${remedy}`);
  expect(() => refuseUnusableFolder(join(folder, name, 'data'))).toThrow(
    refusal(join(folder, shown, 'data'), 'choose another --data-dir'),
  );
  expect(() => refuseUnusablePath(`/${name}`, 'do this')).toThrow(refusal(`/${shown}`, 'do this'));
});

test('a path that only the private containerd cannot use is not refused if the runtime of the machine runs the containers', () => {
  refuseUnusableFolder(join(folder, 'a:b,%[x'), { isPrivate: false });
});

test('a folder whose path has spaces, quotes, letters of any script and other characters is not refused', () => {
  refuseUnusableFolder(join(folder, ' #?;="\'`$&@]{}*!|<>~^() é日'));
});
