import { expect, test } from 'vitest';
import { createSerialByKey } from './serial-by-key.ts';

test('operations with the same key run one after another, also after a failure; others do not wait', async () => {
  const operations = createSerialByKey();
  const steps: string[] = [];
  const blocker = Promise.withResolvers<void>();
  const first = operations.run('a', async () => {
    steps.push('a1 starts');
    await blocker.promise;
    steps.push('a1 ends');
    throw new Error('a1 fails');
  });
  const second = operations.run('a', async () => steps.push('a2'));
  await operations.run('b', async () => steps.push('b'));
  expect(steps).toEqual(['a1 starts', 'b']);
  blocker.resolve();
  await expect(first).rejects.toThrow('a1 fails');
  await second;
  expect(steps).toEqual(['a1 starts', 'b', 'a1 ends', 'a2']);
});

test('pending() resolves after the last operation of the key, and is undefined when there is none', async () => {
  const operations = createSerialByKey();
  const failing = operations.run('a', () => Promise.reject(new Error('fails')));
  expect(operations.pending('b')).toBeUndefined();
  await operations.pending('a');
  expect(operations.pending('a')).toBeUndefined();
  await expect(failing).rejects.toThrow('fails');
});
