import { expect, test } from 'vitest';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import type { Connection } from '../cri/connection.ts';
import { guardImport } from './failed-import.ts';

const { signal } = new AbortController();

/** A containerd whose names refer to the given digests, and whose CRI shows the same names. `calls`: the changing calls, in order. */
function containerd(names: Record<string, string>) {
  const calls: string[] = [];
  const unary = async (method: string, request: unknown): Promise<unknown> => {
    const call = method.replace(/^.*\.(\w+\/\w+)$/, '$1');
    if (call === 'Images/List')
      return { images: Object.entries(names).map(([name, digest]) => ({ name, target: { digest } })) };
    if (call === 'ImageService/ImageStatus') {
      const { image: name } = (request as { image: { image: string } }).image;
      const id = names[name];
      const image = { id, repoTags: [name], repoDigests: [], size: 1, uid: null, username: '', pinned: false };
      return { image: id === undefined ? null : image };
    }
    if (call === 'Images/Delete') {
      const { name } = request as { name: string };
      calls.push(`delete ${name}`);
      delete names[name];
    } else if (call === 'Images/Update') {
      const { name, target } = (request as { image: { name: string; target: { digest: string } } }).image;
      calls.push(`restore ${name}`);
      names[name] = target.digest;
    } else if (call === 'Leases/AddResource')
      calls.push(`hold ${(request as { resource: { id: string } }).resource.id}`);
    else calls.push(call);
    return {};
  };
  return { names, calls, connection: { unary } as unknown as Connection };
}

test('undo() restores the names that the import has changed, and deletes those that it has added', async () => {
  const { names, calls, connection } = containerd({ 'kept:1': 'old', 'other:1': 'other' });
  const timers = createVirtualTimers();
  const guard = await guardImport(connection, ['kept:1', 'new:1'], timers, signal);
  expect(calls).toEqual(['Leases/Create', 'hold old']);
  // CRI adds the ID of an image as another name. A name that another client adds meanwhile stays.
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
