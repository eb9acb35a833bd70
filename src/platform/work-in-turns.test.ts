import { expect, test } from 'vitest';
import { nextOwnTurn, turnClock, workInTurns } from './work-in-turns.ts';

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

test('each waiter has a turn of its own, in the order of the calls', async () => {
  const order: (string | number)[] = [];
  let isOver = false;
  const count = (): void => {
    order.push('turn');
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const wait = async (name: number): Promise<void> => {
    await nextOwnTurn();
    order.push(name);
  };
  const second = wait(1).then(() => wait(3));
  await Promise.all([second, wait(2)]);
  isOver = true;
  expect(order).toEqual(['turn', 1, 'turn', 2, 'turn', 3]);
});
