import { expect, test } from 'vitest';
import { type Connection, RuntimeCallError } from './connection.ts';
import { garbageCalls } from './garbage-collection.ts';

const { signal } = new AbortController();

function collect(errors: { Create?: Error; Delete?: Error }): { calls: object[]; done: Promise<void> } {
  const calls: object[] = [];
  const unary = async (method: string, request: object): Promise<object> => {
    const name = method.split('/')[1] as 'Create' | 'Delete';
    calls.push({ [name]: request });
    const error = errors[name];
    if (error !== undefined) throw error;
    return {};
  };
  return { calls, done: garbageCalls({ unary } as unknown as Connection).collectGarbage(signal) };
}

test.each([
  ['the lease is new', {}],
  ['the lease exists', { Create: new RuntimeCallError('AlreadyExists', 'exists') }],
  ['the lease was deleted meanwhile', { Delete: new RuntimeCallError('NotFound', 'not found') }],
])('the synchronous deletion of a lease collects garbage if %s', async (_, errors) => {
  const { calls, done } = collect(errors);
  await done;
  expect(calls).toEqual([{ Create: { id: 'lifepod-garbage' } }, { Delete: { id: 'lifepod-garbage', sync: true } }]);
});

test.each(['Create', 'Delete'] as const)('the garbage collection fails with an error of %s', async (call) => {
  await expect(collect({ [call]: new RuntimeCallError('Internal', 'no space') }).done).rejects.toThrow('no space');
});
