import { expect, test } from 'vitest';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { type Connection, RuntimeCallError } from '../cri/connection.ts';
import { containerd } from './containerd-fixture.ts';
import { deleteShortNames, removeImageName, removeWholeImage } from './removal.ts';

const { signal } = new AbortController();
const A = 'docker.io/library/a:1';
const B = 'docker.io/library/b:1';

test('removeImageName() deletes only the name, and succeeds if no image has it', async () => {
  const { names, calls, connection } = containerd({ 'a:1': 'x', 'a:2': 'x', 'b:1': 'y' });
  await removeImageName(connection, 'a:1', createVirtualTimers(), signal);
  await removeImageName(connection, 'a:1', createVirtualTimers(), signal);
  expect(names).toEqual({ 'a:2': 'x', 'b:1': 'y' });
  expect(calls).toEqual(['delete a:1', 'delete a:1']);
});

test('the removal of an image or its complete name first deletes its short name', async () => {
  const { names, calls, connection } = containerd({ 'a:1': 'x', 'b:1': 'y', [A]: 'x', [B]: 'y' });
  await removeImageName(connection, A, createVirtualTimers(), signal);
  expect(calls.splice(0)).toEqual(['delete a:1', `delete ${A}`]);
  await removeWholeImage(connection, B, createVirtualTimers(), signal);
  expect(calls).toEqual(['delete b:1', `remove ${B}`]);
  expect(names).toEqual({});
});

test('a short name that another client deletes at the same time does not prevent the removal', async () => {
  const { names, calls, connection } = containerd({ 'a:1': 'x', 'b:1': 'y', [A]: 'x', [B]: 'y' });
  const unary = async <T>(method: string, request: { name?: string }, aborted: AbortSignal): Promise<T> => {
    if (method.endsWith('Images/Delete') && (request.name === 'a:1' || request.name === 'b:1')) {
      delete names[request.name];
      throw new RuntimeCallError('NotFound', 'no such image');
    }
    return connection.unary(method, request, aborted);
  };
  const busy = { ...connection, unary } as Connection;
  await removeImageName(busy, A, createVirtualTimers(), signal);
  await removeWholeImage(busy, B, createVirtualTimers(), signal);
  expect(calls).toEqual([`delete ${A}`, `remove ${B}`]);
});

test('the ID of an image is not taken for the short name of another', async () => {
  const id = `sha256:${'0'.repeat(64)}`;
  const { calls, connection } = containerd({ [id]: 'x', [`docker.io/library/${id}`]: 'y' });
  const shownImage = { id: 'sha256:y', repoTags: [`docker.io/library/${id}`], repoDigests: [], size: 1, uid: null };
  const unary = async <T>(method: string, request: object, aborted: AbortSignal): Promise<T> =>
    method.endsWith('/ListImages') ? ({ images: [shownImage] } as T) : connection.unary(method, request, aborted);
  await deleteShortNames({ ...connection, unary } as Connection, 'all', createVirtualTimers(), signal);
  expect(calls).toEqual([]);
});

test('a complete name that does not exist is assigned before its short name is deleted', async () => {
  const { names, calls, connection } = containerd({ 'a:1': 'x', 'sha256:x': 'x' });
  await removeImageName(connection, A, createVirtualTimers(), signal);
  expect(calls).toEqual([`assign ${A}`, 'delete a:1', `delete ${A}`]);
  expect(names).toEqual({ 'sha256:x': 'x' });
});

test('all short names of images that CRI shows can be deleted, and names that CRI completes itself remain', async () => {
  const kept = { 'example.com/c:1': 'z', [`docker.io/library/c@sha256:${'0'.repeat(64)}`]: 'z' };
  const { names, calls, connection } = containerd({ 'a:1': 'x', 'sha256:x': 'x', 'b:1': 'y', [B]: 'y', ...kept });
  await deleteShortNames(connection, 'all', createVirtualTimers(), signal);
  expect(calls).toEqual([`assign ${A}`, 'delete a:1', 'delete b:1']);
  expect(names).toEqual({ 'sha256:x': 'x', [A]: 'x', [B]: 'y', ...kept });
});

test('a runtime without the service of containerd removes images and names through CRI', async () => {
  const calls: unknown[] = [];
  const unary = async (method: string, request: unknown): Promise<unknown> => {
    if (method.startsWith('containerd.')) throw new RuntimeCallError('Unimplemented', 'no');
    if (method.endsWith('/ImageStatus')) return { image: null };
    calls.push([method, request]);
    return {};
  };
  const connection = { unary } as unknown as Connection;
  await removeImageName(connection, 'a:1', createVirtualTimers(), signal);
  await removeWholeImage(connection, 'b:1', createVirtualTimers(), signal);
  expect(calls).toEqual(['a:1', 'b:1'].map((image) => ['runtime.v1.ImageService/RemoveImage', { image: { image } }]));
});
