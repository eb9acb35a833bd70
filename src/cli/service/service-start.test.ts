import { expect, test } from 'vitest';
import { serviceStart } from './service-start.ts';
import type { ServiceState } from './service-state.ts';

const started = async (state: ServiceState | undefined, join: () => Promise<unknown>, signal: AbortSignal) => {
  const said: string[] = [];
  await serviceStart(
    '/d',
    (line) => said.push(line),
    signal,
    () => state,
    join,
  );
  return said.length;
};

test.each([
  ['starting', 1],
  ['failing', 1],
  ['running', 0],
  ['stopped', 0],
  [undefined, 0],
] as const)('lifepod down finds a service that is %s, and joins its start %i times', async (state, waits) => {
  let joined = 0;
  const join = async (): Promise<unknown> => joined++;
  expect(await started(state, join, new AbortController().signal)).toBe(waits);
  expect(joined).toBe(waits);
});

test('a failed start of the service ends the wait, and an interrupt rejects', async () => {
  const fail = () => Promise.reject(new Error('failed'));
  expect(await started('starting', fail, new AbortController().signal)).toBe(1);
  await expect(started('starting', fail, AbortSignal.abort(new Error('stopped')))).rejects.toThrow('stopped');
});
