import { expect, test } from 'vitest';
import { turnClock, workInTurns } from './work-in-turns.ts';

function work(): void {
  const end = performance.now() + 30;
  while (performance.now() < end);
}

test('others have a turn after a long step, and not after a short one', async () => {
  const between = workInTurns();
  let turns = 0;
  setImmediate(() => turns++);
  await between();
  expect(turns).toBe(0);
  work();
  await between();
  expect(turns).toBe(1);
});

test('a turn is over after long work, and the next one is not', async () => {
  const isOver = turnClock();
  expect(isOver()).toBe(false);
  work();
  expect(isOver()).toBe(true);
  await new Promise(setImmediate);
  expect(isOver()).toBe(false);
});
