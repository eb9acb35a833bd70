import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { userName } from '../../platform/programs/user-name.ts';
import { ownerNamed, writePrivateFile } from './private-file.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-private-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
});

test('the file has the mode 0600', () => {
  const path = join(folder, 'kubeconfig');
  writePrivateFile(path, 'text');
  expect(readFileSync(path, 'utf8')).toBe('text');
  expect(statSync(path).mode & 0o7777).toBe(0o600);
});

test('an existing file and a symbolic link are refused, and nothing is written', () => {
  const [file, link] = [join(folder, 'file'), join(folder, 'link')];
  writeFileSync(file, 'kept');
  symlinkSync(join(folder, 'missing'), link);
  for (const path of [file, link])
    expect(() => writePrivateFile(path, 'text')).toThrow(
      `the file ${path} cannot be created: it exists already; remove it, or give another --output`,
    );
  expect(readFileSync(file, 'utf8')).toBe('kept');
  expect(existsSync(join(folder, 'missing'))).toBe(false);
});

test('a folder is refused with the name of a file in it', () => {
  for (const path of [folder, `${folder}/`, `${folder}/none/`])
    expect(() => writePrivateFile(path, 'text')).toThrow(
      `the file ${path} cannot be created: it is a folder; give the name of a file in it, such as --output ${join(path, 'kubeconfig')}`,
    );
});

test('the error names a missing folder', () => {
  expect(() => writePrivateFile(join(folder, 'none', 'kubeconfig'), 'text')).toThrow(
    'its folder does not exist; create it, or give another --output',
  );
});

test.runIf(process.geteuid?.() === 0)('root writes a file for a user with the rights of this user only', () => {
  const jane = { uid: 54_321, gid: 54_322, name: 'jane' };
  const home = join(folder, 'home');
  mkdirSync(home);
  chmodSync(folder, 0o755);
  chownSync(home, jane.uid, jane.gid);
  const path = join(home, 'kubeconfig');
  writePrivateFile(path, 'text', jane);
  expect(statSync(path)).toMatchObject({ uid: jane.uid, gid: jane.gid });
  expect(statSync(path).mode & 0o7777).toBe(0o600);
  // The user has replaced the folder by a link to a folder of root.
  symlinkSync(folder, join(home, 'link'));
  const inFolderOfRoot = join(home, 'link', 'kubeconfig');
  expect(() => writePrivateFile(inFolderOfRoot, 'text', jane)).toThrow(
    `the file ${inFolderOfRoot} cannot be created as jane: the user has no right to write to the folder`,
  );
  expect([process.geteuid?.(), process.getegid?.()]).toEqual([0, 0]);
});

test.runIf(process.geteuid?.() === 0)(
  'root writes no file without an owner where another user could redirect root',
  () => {
    const home = join(folder, 'home');
    mkdirSync(join(home, 'deep'), { recursive: true });
    symlinkSync(folder, join(folder, 'link'));
    const advice =
      'belongs to the user 54321, who could redirect root to another one; add --owner 54321, or give another';
    writePrivateFile(join(folder, 'link/first'), 'text');
    lchownSync(join(folder, 'link'), 54_321, 54_322);
    chownSync(home, 54_321, 54_322);
    for (const path of ['home/x', 'home/deep/x', 'link/x'].map((name) => join(folder, name))) {
      expect(() => writePrivateFile(path, 'text')).toThrow(advice);
      expect(existsSync(path)).toBe(false);
    }
  },
);

test('the owner of a file is a login name, a UID or UID:GID, also of a user without a login name', () => {
  const jane = { uid: 54_321, gid: 54_322, name: 'jane' };
  const owner = (text: string) =>
    ownerNamed(text, (reference) => (['jane', '54321'].includes(reference) ? jane : undefined));
  expect(owner('jane')).toEqual(jane);
  expect(owner('54321')).toEqual(jane);
  expect(owner('54321:7')).toEqual({ ...jane, gid: 7 });
  expect(owner('64002')).toEqual({ uid: 64_002, gid: 64_002, name: '64002' });
  expect(owner('64002:7')).toEqual({ uid: 64_002, gid: 7, name: '64002' });
  for (const text of ['', 'joe', '-1', '4294967295', '64002:4294967295', '64002:', '1:2:3', 'jane:7'])
    expect(() => owner(text)).toThrow(
      `--owner ${text} is not a user of this machine: give a login name, a UID or UID:GID`,
    );
});

test.runIf(process.geteuid?.() === 0)(
  'the advice for a folder of another user names the user, and the UID for --owner',
  () => {
    // The advice gives the UID, because names of directory services may contain characters that a shell interprets.
    chownSync(folder, 1, 1);
    expect(() => writePrivateFile(join(folder, 'x'), 'text')).toThrow(
      `its folder belongs to the user ${userName(1)}, who could redirect root to another one; add --owner 1, or`,
    );
  },
);
