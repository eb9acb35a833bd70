import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { tryLockFile } from './file-locks.ts';
import {
  claimDeadRecords,
  createRecord,
  hasLiveSessions,
  lockGate,
  readRecords,
  removeGate,
  removeRecord,
  sessionOf,
} from './session-records.ts';

const never = new AbortController().signal;
const OBJECT = { group: '', version: 'v1', resource: 'pods', kind: 'Pod', namespace: 'default', name: 'a' };
let dataDir: string;
beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'lifepod-records-'));
  (await lockGate(dataDir, never)).release();
});
afterEach(() => rmSync(dataDir, { recursive: true }));
const files = (): string[] => readdirSync(join(dataDir, 'sessions')).sort();

test('a session counts as alive until it leaves, and its record names the objects', () => {
  const record = createRecord(dataDir);
  record.write([OBJECT, { ...OBJECT, name: 'b' }]);
  record.write([OBJECT]);
  expect(readRecords(dataDir)).toEqual([{ id: record.id, pid: process.pid, objects: [OBJECT] }]);
  expect([hasLiveSessions(dataDir), claimDeadRecords(dataDir)]).toEqual([true, []]);
  record.remove();
  expect([hasLiveSessions(dataDir), files()]).toEqual([false, ['gate']]);
});

test('the record of a session that ended without deleting its objects is claimed by one other session', () => {
  const record = createRecord(dataDir);
  record.write([OBJECT]);
  record.abandon();
  const [dead] = claimDeadRecords(dataDir);
  expect(dead).toMatchObject({ id: record.id, pid: process.pid, objects: [OBJECT] });
  // The engine must not stop while a session deletes the objects.
  expect([hasLiveSessions(dataDir), claimDeadRecords(dataDir)]).toEqual([true, []]);
  dead?.release();
  expect(claimDeadRecords(dataDir).map((each) => each.remove())).toHaveLength(1);
  expect(files()).toEqual(['gate']);
});

test('a record that was written only in part has no objects', () => {
  writeFileSync(join(dataDir, 'sessions/0123'), '{"pid":1,"obj');
  expect(readRecords(dataDir)).toEqual([{ id: '0123', pid: 0, objects: [] }]);
});

test('the session that has created an object is found by another session while it runs', () => {
  const record = createRecord(dataDir);
  record.write([OBJECT]);
  expect(sessionOf(dataDir, 'other', OBJECT)).toBe(process.pid);
  expect(sessionOf(dataDir, 'other', { ...OBJECT, namespace: 'b' })).toBeUndefined();
  expect(sessionOf(dataDir, record.id, OBJECT)).toBeUndefined();
  record.remove();
  // Another process has the PID of the killed session now.
  writeFileSync(join(dataDir, 'sessions/0123'), JSON.stringify({ pid: process.pid, objects: [OBJECT] }));
  expect(sessionOf(dataDir, 'other', OBJECT)).toBeUndefined();
  // No process has this PID, because the maximum is lower.
  writeFileSync(join(dataDir, 'sessions/0123'), JSON.stringify({ pid: 2 ** 30, objects: [OBJECT] }));
  const [dead] = claimDeadRecords(dataDir);
  expect(sessionOf(dataDir, 'other', OBJECT)).toBeUndefined();
  dead?.remove();
});

test('a session notices that lifepod down has removed its record', () => {
  const record = createRecord(dataDir);
  expect(record.isRevoked()).toBe(false);
  removeRecord(dataDir, record.id);
  expect([record.isRevoked(), hasLiveSessions(dataDir)]).toEqual([true, false]);
  record.remove();
});

test('a second session waits at the gate until the first has passed, or until it is interrupted', async () => {
  const first = await lockGate(dataDir, never);
  const stop = new AbortController();
  const interrupted = lockGate(dataDir, stop.signal);
  stop.abort();
  await expect(interrupted).rejects.toThrow();
  let passed = false;
  const second = lockGate(dataDir, never).then((lock) => {
    passed = true;
    return lock;
  });
  await new Promise((resolve) => void setImmediate(resolve));
  expect(passed).toBe(false);
  first.release();
  (await second).release();
});

test('a session that waits at a gate that is removed locks a new one, and no gate with records is removed', async () => {
  const first = await lockGate(dataDir, never);
  const waiting = lockGate(dataDir, never);
  await new Promise((resolve) => void setImmediate(resolve));
  const record = createRecord(dataDir);
  removeGate(dataDir);
  expect(files()).toEqual([record.id, 'gate'].sort());
  record.remove();
  removeGate(dataDir);
  expect(readdirSync(dataDir)).toEqual([]);
  first.release();
  const second = await waiting;
  expect(files()).toEqual(['gate']);
  expect(tryLockFile(join(dataDir, 'sessions/gate'), { create: false })).toBeUndefined();
  second.release();
});

test('a data folder without sessions has no records', () => {
  rmSync(join(dataDir, 'sessions'), { recursive: true });
  expect([readRecords(dataDir), claimDeadRecords(dataDir), hasLiveSessions(dataDir)]).toEqual([[], [], false]);
});
