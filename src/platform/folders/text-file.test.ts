import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readTextFile } from './text-file.ts';

test('a regular file and /dev/null are read, and a named pipe, an endless device, a folder and a missing file are errors', () => {
  const folder = mkdtempSync(join(tmpdir(), 'lifepod-text-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [file, pipe] = [join(folder, 'file'), join(folder, 'pipe')];
  writeFileSync(file, 'text é');
  execFileSync('mkfifo', [pipe]);
  expect(readTextFile(file)).toBe('text é');
  expect(readTextFile('/dev/null')).toBe('');
  for (const path of [pipe, '/dev/zero']) expect(() => readTextFile(path)).toThrow('it is not a regular file');
  expect(() => readTextFile(folder)).toThrow('EISDIR');
  expect(() => readTextFile(join(folder, 'absent'))).toThrow('ENOENT');
});
