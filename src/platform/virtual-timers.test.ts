import { expect, test } from 'vitest';
import { createVirtualTimers } from './virtual-timers.ts';

test('run() waits before each step until nothing can happen any more at the current time', async () => {
  const seen: string[] = [];
  const settled = async (): Promise<void> => void seen.push(`settled at ${timers.now()}`);
  const timers = createVirtualTimers(0, { settled });
  timers.at(5, () => seen.push('first'));
  timers.at(7, () => seen.push('second'));
  expect(await timers.run(() => false, 10)).toBe(false);
  expect(seen).toEqual(['settled at 0', 'first', 'settled at 5', 'second', 'settled at 7']);
  expect(timers.now()).toBe(10);
});

test('run() rejects after the maximum number of steps', async () => {
  const timers = createVirtualTimers(0, { mostSteps: 3 });
  const again = (): void => void timers.at(timers.now() + 1, again);
  again();
  await expect(timers.run(() => false, 1000)).rejects.toThrow('no rest after 3 steps');
});
