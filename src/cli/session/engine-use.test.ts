import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ensurePrivateFolder, lockDataDir } from '../../platform/files.ts';
import { takeTurn } from '../ending/turns.ts';
import { leaveEngine, restartEngine } from './engine-use.ts';
import { createRecord, removeRecord } from './session-records.ts';

let folder: string;
let said: string[];
beforeEach(() => {
  said = [];
  folder = mkdtempSync(join(tmpdir(), 'lifepod-use-'));
  ensurePrivateFolder(join(folder, 'sessions'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const output = { say: (line: string) => void said.push(line), detail: (line: string) => void said.push(line) };

test('a session that cannot stop its engine says why, and which command stops it', async () => {
  const lock = lockDataDir(folder, 'session');
  // There is no kubeconfig.
  expect(await leaveEngine(folder, createRecord(folder), true, output)).toBe(false);
  expect(said).toEqual([
    expect.stringMatching(
      /^lifepod: the session could not stop its engine: .*kubeconfig.*; '(?:sudo )?\S*lifepod down --data-dir \S+' stops it$/,
    ),
  ]);
  lock.release();
});

test('a session that ends while lifepod down ends the engine says so, and leaves the engine to that command', async () => {
  const lock = lockDataDir(folder, 'session');
  const other = await takeTurn(folder, output.say, new AbortController().signal);
  expect(await leaveEngine(folder, createRecord(folder), true, output)).toBe(true);
  expect(said).toEqual(["lifepod: 'lifepod down' ends the engine and all its Pods"]);
  expect(readdirSync(join(folder, 'sessions'))).toEqual(['gate']);
  other.release();
  lock.release();
});

test('a session whose engine has failed leaves the restart to another process that ends the engine', async () => {
  const record = createRecord(folder);
  const other = await takeTurn(folder, output.say, new AbortController().signal);
  await other.own();
  const waits = Promise.withResolvers<void>();
  const restarted = restartEngine(folder, record, () => waits.resolve());
  await waits.promise;
  removeRecord(folder, record.id);
  other.release();
  expect(await restarted).toBeUndefined();
  record.abandon();
});
