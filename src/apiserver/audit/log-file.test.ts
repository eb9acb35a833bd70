import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { openLogFile } from './log-file.ts';

const root = mkdtempSync(join(tmpdir(), 'lifepod-audit-'));
afterAll(() => rmSync(root, { recursive: true }));

let folders = 0;
const NOW = Date.parse('2026-01-31T09:30:00.000Z');
const newPath = (): string => join(root, String(folders++), 'audit.log');
const optionsOf = (path: string, maxBytes = 1000) => ({ path, maxBytes, maxBackups: 0, maxAgeDays: 0, now: () => NOW });
const lines = (...texts: string[]): Buffer[] => texts.map((text) => Buffer.from(`${text}\n`));
const filesOf = (path: string): Record<string, string> => {
  const folder = join(path, '..');
  return Object.fromEntries(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')]));
};

test('lines are appended to a new file, which only its owner may read', async () => {
  const path = newPath();
  const file = await openLogFile(optionsOf(path));
  expect(await file.append(lines('a', 'b'))).toEqual({ written: 2 });
  expect(await file.append(lines('c'))).toEqual({ written: 1 });
  expect(readFileSync(path, 'utf8')).toBe('a\nb\nc\n');
  expect(statSync(path).mode & 0o777).toBe(0o600);
  await file.close();
  const again = await openLogFile(optionsOf(path));
  await again.append(lines('d'));
  await again.close();
  expect(readFileSync(path, 'utf8')).toBe('a\nb\nc\nd\n');
});

test('a file is rotated before it exceeds its limit, between lines, and each rotated file has its own name', async () => {
  const path = newPath();
  const file = await openLogFile(optionsOf(path, 6));
  expect(await file.append(lines('aa', 'bb', 'cc', 'a long line', 'dd'))).toEqual({ written: 5 });
  await file.close();
  expect(filesOf(path)).toEqual({
    'audit-2026-01-31T09-30-00.000.log': 'aa\nbb\n',
    'audit-2026-01-31T09-30-00.001.log': 'cc\n',
    'audit-2026-01-31T09-30-00.002.log': 'a long line\n',
    'audit.log': 'dd\n',
  });
});

test('rotated files beyond their number are removed at the start and after a rotation', async () => {
  const path = newPath();
  mkdirSync(join(path, '..'));
  const backup = (minute: number) => join(path, '..', `audit-2026-01-31T09-0${minute}-00.000.log`);
  for (const minute of [1, 2, 3]) writeFileSync(backup(minute), '');
  const file = await openLogFile({ ...optionsOf(path, 3), maxBackups: 2 });
  expect(Object.keys(filesOf(path)).sort()).toEqual([
    'audit-2026-01-31T09-02-00.000.log',
    'audit-2026-01-31T09-03-00.000.log',
    'audit.log',
  ]);
  await file.append(lines('aa', 'bb'));
  await file.close();
  expect(Object.keys(filesOf(path)).sort()).toEqual([
    'audit-2026-01-31T09-03-00.000.log',
    'audit-2026-01-31T09-30-00.000.log',
    'audit.log',
  ]);
});

test('a line that a crash has cut is ended at the next start', async () => {
  const path = newPath();
  mkdirSync(join(path, '..'));
  writeFileSync(path, 'a\nb');
  const file = await openLogFile(optionsOf(path, 6));
  expect(await file.append(lines('c', 'd'))).toEqual({ written: 2 });
  await file.close();
  expect(filesOf(path)).toEqual({ 'audit-2026-01-31T09-30-00.000.log': 'a\nb\nc\n', 'audit.log': 'd\n' });
});

test('a failure affects only the lines of its call', async () => {
  const path = newPath();
  const folder = join(path, '..');
  const file = await openLogFile(optionsOf(path, 3));
  await file.append(lines('aa'));
  renameSync(folder, `${folder}-moved`);
  writeFileSync(folder, '');
  const failed = await file.append(lines('bb', 'cc'));
  expect(failed).toMatchObject({ written: 0, error: { code: 'ENOTDIR' } });
  rmSync(folder);
  expect(await file.append(lines('dd'))).toEqual({ written: 1 });
  await file.close();
  expect(filesOf(path)).toEqual({ 'audit.log': 'dd\n' });
});

test('a path that is a folder or a device is refused', async () => {
  await expect(openLogFile(optionsOf(root))).rejects.toThrow('it is not a regular file');
  await expect(openLogFile(optionsOf('/dev/full'))).rejects.toThrow('it is not a regular file');
});
