import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { UserError } from '../../platform/files.ts';
import { importFailure } from '../../runtime/images/import-failure.ts';
import { closedBySudo, withArchiveFrom } from './standard-input.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-input-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const input = (...parts: string[]): Readable => Readable.from(parts.map((part) => Buffer.from(part)));

test('an archive from standard input can be read several times, and leaves no file', async () => {
  const shown: string[] = [];
  const read = await withArchiveFrom(
    input('abc', 'de'),
    folder,
    (text) => void shown.push(text),
    async (path) => [readFileSync(path, 'utf8'), readFileSync(path, 'utf8'), readdirSync(folder).length],
  );
  expect(read).toEqual(['abcde', 'abcde', 0]);
  expect(shown).toEqual(['reading standard input: 3 B', 'reading standard input: 5 B']);
});

test('an error about an archive from standard input names standard input', async () => {
  const failing = withArchiveFrom(
    input('x'),
    folder,
    () => undefined,
    async (path) => {
      throw new UserError(`${path} is not an archive`);
    },
  );
  await expect(failing).rejects.toThrow(/^standard input is not an archive$/);
});

test('an archive from another pipe has the name of the pipe in messages', async () => {
  const shown: string[] = [];
  const failing = withArchiveFrom(
    input('x'),
    folder,
    (text) => void shown.push(text),
    async (path) => {
      throw new UserError(`${path} is not an archive`);
    },
    '/dev/fd/63',
  );
  await expect(failing).rejects.toThrow(/^\/dev\/fd\/63 is not an archive$/);
  expect(shown).toEqual(['reading /dev/fd/63: 1 B']);
});

test('the advice about a damaged archive from standard input is about the command that writes it', async () => {
  const failing = withArchiveFrom(
    input('x'),
    folder,
    () => undefined,
    async (path) => {
      throw new UserError(importFailure(path, 'ctr: image config "x.json" not found', 1));
    },
  );
  await expect(failing).rejects.toThrow(
    /^the image archive from standard input is damaged \(its configuration x\.json is missing or damaged\): see whether the command that writes it has failed$/,
  );
});

test('an archive is not read from a terminal', async () => {
  const terminal = Object.assign(input(), { isTTY: true });
  const refused = withArchiveFrom(
    terminal,
    folder,
    () => undefined,
    async () => 'used',
  );
  await expect(refused).rejects.toThrow(/^standard input is a terminal: send an archive, as in '/);
});

test('a pipe of the shell that sudo has closed is reported with the command that reads standard input', () => {
  const fd = openSync(folder, 'r');
  const [open, closed] = [`/dev/fd/${fd}`, '/proc/self/fd/9999'];
  const text = (path: string, env: NodeJS.ProcessEnv) => closedBySudo(path, 'up -', env);
  expect(text(closed, { SUDO_UID: '1000' })).toBe(
    "does not exist, because sudo closes the pipe of '<(COMMAND)': type 'COMMAND | sudo lifepod up -'",
  );
  expect([text(open, { SUDO_UID: '1000' }), text('/none', { SUDO_UID: '1000' }), text(closed, {})]).toEqual(
    Array(3).fill(undefined),
  );
  closeSync(fd);
});
