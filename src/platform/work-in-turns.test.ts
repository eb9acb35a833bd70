import { expect, test } from 'vitest';
import { longWork, nextOwnTurn, turnClock, workInTurns } from './work-in-turns.ts';

function work(): void {
  const end = performance.now() + 30;
  while (performance.now() < end);
}

test('workInTurns yields to other work after a long step, but not after a short one', async () => {
  const between = workInTurns();
  let turns = 0;
  setImmediate(() => turns++);
  await between();
  expect(turns).toBe(0);
  work();
  await between();
  expect(turns).toBe(1);
});

test('turnClock reports a turn as over after long work, and starts again in the next turn', async () => {
  const isOver = turnClock();
  expect(isOver()).toBe(false);
  work();
  expect(isOver()).toBe(true);
  await new Promise(setImmediate);
  expect(isOver()).toBe(false);
});

test('nextOwnTurn gives each waiter a turn of its own, in the order of the calls', async () => {
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

test('long work runs one at a time, even after work that failed', async () => {
  const steps: string[] = [];
  const run = async (name: string, fails = false): Promise<void> => {
    const { betweenSteps, end } = longWork();
    try {
      work();
      for (const step of [1, 2]) {
        await betweenSteps();
        steps.push(`${name}${step}`);
        work();
      }
      if (fails) throw new Error(name);
    } finally {
      end();
    }
  };
  await Promise.all([expect(run('a', true)).rejects.toThrow('a'), run('b'), run('c')]);
  expect(steps).toEqual(['a1', 'a2', 'b1', 'b2', 'c1', 'c2']);
});

test('short work does not wait for long work that runs', async () => {
  const long = longWork();
  await long.begin();
  const short = longWork();
  expect(await short.betweenSteps()).toBe(false);
  expect(short.waitsForOthers()).toBe(false);
  work();
  expect(short.waitsForOthers()).toBe(true);
  expect(long.waitsForOthers()).toBe(false);
  long.end();
  expect(await short.betweenSteps()).toBe(true);
  short.end();
});
