import {
  chmodSync,
  chownSync,
  lchownSync,
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
import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { openLog } from '../cli/detached/detach.ts';
import { dataDirOwner, ensureDataDir, lockDataDir, realDataDir } from './files.ts';
import { replaceableBy } from './folder-owners.ts';
import { asRoot } from './programs/typed-program.ts';

const JANE = 64_002;

let folder: string;
let data: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'lifepod-owners-')));
  data = join(folder, 'data');
  mkdirSync(data, { mode: 0o755 });
  onTestFinished(() => rmSync(folder, { recursive: true }));
});

test('a log that is a symbolic link is not opened', () => {
  writeFileSync(join(folder, 'target'), 'kept');
  symlinkSync(join(folder, 'target'), join(data, 'lifepod.log'));
  expect(() => openLog(join(data, 'lifepod.log'))).toThrow(`the log ${data}/lifepod.log is a symbolic link: remove it`);
  expect(readFileSync(join(folder, 'target'), 'utf8')).toBe('kept');
});

describe.runIf(process.geteuid?.() === 0)('as root', () => {
  test('a data folder of root whose entries belong to root is accepted, even if other users own deeper entries', () => {
    mkdirSync(join(data, 'volumes/pv'), { recursive: true });
    chownSync(join(data, 'volumes/pv'), JANE, JANE);
    symlinkSync('/nonexistent', join(data, 'link'));
    ensureDataDir(data);
    expect(statSync(data).mode & 0o777).toBe(0o700);
    lockDataDir(data).release();
    expect(dataDirOwner(data)).toBeUndefined();
  });

  test('a data folder of another user is refused, and is not changed', () => {
    chownSync(data, JANE, JANE);
    const refusal =
      `the data folder ${data} belongs to the user ${JANE}, who could become root through it: choose another --data-dir, or, ` +
      `if you trust its content, run: ${asRoot(`chown -h root: ${data}`, process.env)}`;
    for (const use of [ensureDataDir, lockDataDir, dataDirOwner]) expect(() => use(data)).toThrow(refusal);
    expect(statSync(data)).toMatchObject({ uid: JANE, mode: expect.any(Number) });
    expect(statSync(data).mode & 0o777).toBe(0o755);
  });

  test('a data folder with entries of another user is refused, also if they are links', () => {
    symlinkSync('/etc/evil', join(data, 'lifepod.log'));
    mkdirSync(join(data, 'pki'));
    lchownSync(join(data, 'lifepod.log'), JANE, JANE);
    chownSync(join(data, 'pki'), JANE, JANE);
    for (const use of [ensureDataDir, lockDataDir])
      expect(() => use(data)).toThrow(
        new RegExp(`/data/\\S+ belongs to the user ${JANE}, .* chown -h root: \\S+/data/\\S+ \\S+$`),
      );
  });

  test('a --data-dir that passes through a link of another user is refused, and one through a link of root is not', () => {
    const link = join(folder, 'link');
    symlinkSync('data', link);
    expect(realDataDir(join(link, 'new'))).toBe(join(data, 'new'));
    const second = join(folder, 'second');
    mkdirSync(join(data, 'below'));
    symlinkSync(join(link, 'below'), second);
    expect(realDataDir(second)).toBe(join(data, 'below'));
    lchownSync(link, JANE, JANE);
    for (const path of [link, join(link, 'new'), second])
      expect(() => realDataDir(path)).toThrow(
        `the symbolic link ${link} belongs to the user ${JANE}, who could redirect`,
      );
  });

  test('a folder that another user can replace causes a warning', () => {
    expect(replaceableBy(data)).toBeUndefined();
    chmodSync(folder, 0o777);
    expect(replaceableBy(data)).toContain(`all users can write to ${folder}, and so replace the data folder ${data}`);
    chmodSync(folder, 0o1777);
    expect(replaceableBy(join(data, 'new'))).toBeUndefined();
    chownSync(folder, JANE, JANE);
    expect(replaceableBy(data)).toContain(`the user ${JANE}, who owns ${folder}, can replace the data folder ${data}`);
    expect(replaceableBy(data, JANE)).toBeUndefined();
  });
});
