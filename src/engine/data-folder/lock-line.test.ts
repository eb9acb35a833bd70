import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { dataDirOwner, isSessionEngine, lockDataDir } from '../../platform/files.ts';
import { forgetOwner, isStopping, keepSessionEngine, recordStopping } from './lock-line.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lifepod-lock-line-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('an engine that is stopping keeps its PID and role, and one that has stopped has no PID', () => {
  const lock = lockDataDir(folder, 'session');
  expect(isStopping(folder)).toBe(false);
  recordStopping(folder);
  expect([isStopping(folder), isSessionEngine(folder), dataDirOwner(folder)]).toEqual([true, true, process.pid]);
  keepSessionEngine(folder, process.pid);
  expect([isStopping(folder), isSessionEngine(folder), dataDirOwner(folder)]).toEqual([true, false, process.pid]);
  forgetOwner(folder);
  expect([isStopping(folder), dataDirOwner(folder)]).toEqual([false, undefined]);
  lock.release();
});

test('an engine changes neither the line of another owner nor a folder that was deleted', () => {
  const line = `${process.pid + 1} engine\n`;
  writeFileSync(join(folder, 'lock'), line);
  recordStopping(folder);
  forgetOwner(folder);
  expect(readFileSync(join(folder, 'lock'), 'utf8')).toBe(line);
  rmSync(folder, { recursive: true });
  recordStopping(folder);
  forgetOwner(folder);
});
