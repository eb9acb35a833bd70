import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openLogFile } from './log-file.ts';

const TOO_LONG = 8 * 1024 * 1024 + 1;
let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-log-'));
  path = join(folder, 'containerd.log');
  writeFileSync(path, '');
});
afterEach(() => rmSync(folder, { recursive: true }));

test('a log of more than 8 MiB is truncated, and its content is kept in a second file', () => {
  truncateSync(path, TOO_LONG);
  const log = openLogFile(path);
  expect(statSync(path).size).toBe(0);
  expect(statSync(`${path}.1`).size).toBe(TOO_LONG);
  appendFileSync(path, 'new\n');
  expect(log.tail()).toBe('new');
  log.close();
});

test.each([
  ['the disk is full', () => symlinkSync('/dev/full', `${path}.1`)],
  ['the path of the second file is a folder', () => mkdirSync(`${path}.1`)],
])('a log of more than 8 MiB is truncated even if %s', (_, prepare) => {
  prepare();
  appendFileSync(path, Buffer.alloc(TOO_LONG, 'x'));
  openLogFile(path).close();
  expect(statSync(path).size).toBe(0);
});
