import { expect, test } from 'vitest';
import { createFairTurns, limitPerTurn } from './fair-turns.ts';

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('one piece of work runs per turn of the event loop, and the owners take turns', async () => {
  const turn = createFairTurns();
  const ran: string[] = [];
  for (const piece of ['a 1', 'a 2', 'a 3', 'b 1', 'c 1', 'b 2'])
    void turn(piece.split(' ')[0] ?? '').then(() => ran.push(piece));
  const seen: number[] = [];
  while (ran.length < 6) {
    await nextTurn();
    seen.push(ran.length);
  }
  expect(ran).toEqual(['a 1', 'b 1', 'c 1', 'a 2', 'b 2', 'a 3']);
  expect(seen.filter((count, index) => count > (seen[index - 1] ?? 0) + 1)).toEqual([]);
});

test('work that asks for its next turn comes after the waiting work of others, and work that comes later runs, too', async () => {
  const turn = createFairTurns();
  const ran: string[] = [];
  const long = (async () => {
    for (let piece = 1; piece <= 3; piece++) {
      await turn('a');
      ran.push(`a ${piece}`);
    }
  })();
  const short = turn('b').then(() => ran.push('b'));
  await Promise.all([long, short]);
  expect(ran).toEqual(['a 1', 'b', 'a 2', 'a 3']);
  await turn('a');
  await nextTurn();
  await turn('c');
});

test('calls are counted by key in each turn of the event loop', async () => {
  const isTooMany = limitPerTurn(2);
  expect(['a', 'a', 'b', 'a'].map(isTooMany)).toEqual([false, false, false, true]);
  await nextTurn();
  expect(isTooMany('a')).toBe(false);
});
