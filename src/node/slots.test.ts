import { expect, it } from 'vitest';
import { createSlots } from './slots.ts';

it('runs no more at a time than there are slots, in the order of asking, whatever fails', async () => {
  const slots = createSlots(2);
  const { signal } = new AbortController();
  const begun: number[] = [];
  const ends = [0, 1, 2, 3].map(() => Promise.withResolvers<void>());
  const all = ends.map(({ promise }, i) =>
    slots.run(() => {
      begun.push(i);
      return promise;
    }, signal),
  );
  await Promise.resolve();
  expect(begun).toEqual([0, 1]);
  ends[1]?.reject(new Error('failed'));
  await expect(all[1]).rejects.toThrow('failed');
  expect(begun).toEqual([0, 1, 2]);
  for (const { resolve } of ends) resolve();
  await Promise.allSettled(all);
  expect(begun).toEqual([0, 1, 2, 3]);
});

it('does not run what was given up while it waited', async () => {
  const slots = createSlots(1);
  const first = Promise.withResolvers<void>();
  const abort = new AbortController();
  const running = slots.run(() => first.promise, new AbortController().signal);
  const waiting = slots.run(async () => 'ran', abort.signal);
  abort.abort(new Error('given up'));
  first.resolve();
  await running;
  await expect(waiting).rejects.toThrow('given up');
});
