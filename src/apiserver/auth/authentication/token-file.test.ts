import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readTokenFile } from './token-file.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-tokens-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

function fileWith(text: string) {
  const path = join(folder, 'tokens.csv');
  writeFileSync(path, text);
  return readTokenFile(path);
}

test('each line has a token, a user name, a user UID and groups', () => {
  const users = fileWith('one,alice,1\n\ntwo,bob,2,readers\r\n"th,ree","c ""x""",3,"a,b",more\n,nobody,4\none,again,5');
  expect(users('two')).toEqual({ name: 'bob', uid: '2', groups: ['readers'] });
  expect(users('th,ree')).toEqual({ name: 'c "x"', uid: '3', groups: ['a', 'b'] });
  expect(users('one')).toEqual({ name: 'again', uid: '5', groups: [] });
  for (const unknown of ['', 'three', 'One', 'alice']) expect(users(unknown)).toBeUndefined();
  expect(fileWith('')('x')).toBeUndefined();
});

test('a malformed file is refused with its line and without a token', () => {
  const failure = (text: string) => {
    try {
      fileWith(text);
    } catch (error) {
      return (error as Error).message.replace(folder, '');
    }
    return 'none';
  };
  expect(failure('secret,alice,1\nother,bob\n')).toBe(
    '--token-auth-file /tokens.csv, line 2: a line must have at least 3 columns (token, user name, user uid), found 2',
  );
  expect(failure('a,b,c\n"secret,alice,1\n')).toBe('--token-auth-file /tokens.csv, line 2: the quotes do not match');
  expect(failure('sec"ret,alice,1\n')).toBe('--token-auth-file /tokens.csv, line 1: the quotes do not match');
  expect(() => readTokenFile(join(folder, 'none'))).toThrow(
    /--token-auth-file .*\/none does not exist: give a CSV file/,
  );
});
