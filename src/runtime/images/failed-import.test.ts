import { expect, test } from 'vitest';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import type { Connection } from '../cri/connection.ts';
import { containerd } from './containerd-fixture.ts';
import { deleteLeftLeases, guardImport } from './failed-import.ts';

const { signal } = new AbortController();

test('undo() restores the names that the import has changed, and deletes those that it has added', async () => {
  const { names, calls, connection } = containerd({ 'kept:1': 'old', 'other:1': 'other' });
  const timers = createVirtualTimers();
  const guard = await guardImport(connection, ['kept:1', 'new:1'], timers, signal);
  expect(calls).toEqual(['Leases/Create', 'hold old']);
  // CRI adds the ID of an image as a further name. A name that another client adds during the import must remain.
  Object.assign(names, { 'kept:1': 'broken', 'new:1': 'broken', 'sha256:broken': 'broken', 'pulled:1': 'fine' });
  let isUndone = false;
  void guard.undo().then(() => {
    isUndone = true;
  });
  expect(await timers.run(() => isUndone, timers.now() + 1000)).toBe(true);
  expect(names).toEqual({ 'kept:1': 'old', 'other:1': 'other', 'pulled:1': 'fine' });
  expect(calls.slice(2).sort()).toEqual(['delete new:1', 'delete sha256:broken', 'restore kept:1']);
  await guard.release();
  expect(calls.at(-1)).toBe('Leases/Delete');
});

test('an import of new names needs no lease', async () => {
  const { calls, connection } = containerd({ 'other:1': 'other' });
  const guard = await guardImport(connection, ['new:1'], createVirtualTimers(), signal);
  await guard.release();
  expect(calls).toEqual([]);
});

test('the leases that expire are deleted, and the content is collected with the last one', async () => {
  const labels = { 'containerd.io/gc.expire': '2026-01-02T00:00:00Z' };
  const leases = [
    { id: 'ctr', labels },
    { id: 'lifepod-import-1', labels },
    { id: 'sandbox', labels: {} },
  ];
  const deleted: unknown[] = [];
  const unary = async (method: string, request: object): Promise<unknown> => {
    if (method.endsWith('Leases/List')) return { leases };
    deleted.push(request);
    return {};
  };
  await deleteLeftLeases({ unary } as unknown as Connection, signal);
  expect(deleted).toEqual([
    { id: 'ctr', sync: false },
    { id: 'lifepod-import-1', sync: true },
  ]);
});
