import { expect, test } from 'vitest';
import { createVirtualTimers } from '../../platform/virtual-timers.ts';
import { type Connection, RuntimeCallError } from '../cri/connection.ts';
import { containerd } from './containerd-fixture.ts';
import { removeImageName } from './remove-name.ts';

const { signal } = new AbortController();

test('removeImageName() deletes only the name, and succeeds if no image has it', async () => {
  const { names, calls, connection } = containerd({ 'a:1': 'x', 'a:2': 'x', 'b:1': 'y' });
  await removeImageName(connection, 'a:1', createVirtualTimers(), signal);
  await removeImageName(connection, 'a:1', createVirtualTimers(), signal);
  expect(names).toEqual({ 'a:2': 'x', 'b:1': 'y' });
  expect(calls).toEqual(['delete a:1', 'delete a:1']);
});

test('a runtime without the service of containerd removes the name through CRI', async () => {
  const calls: unknown[] = [];
  const unary = async (method: string, request: unknown): Promise<unknown> => {
    if (method.startsWith('containerd.')) throw new RuntimeCallError('Unimplemented', 'no');
    calls.push([method, request]);
    return {};
  };
  await removeImageName({ unary } as unknown as Connection, 'a:1', createVirtualTimers(), signal);
  expect(calls).toEqual([['runtime.v1.ImageService/RemoveImage', { image: { image: 'a:1' } }]]);
});
