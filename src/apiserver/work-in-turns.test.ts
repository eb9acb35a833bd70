import { expect, test } from 'vitest';
import { workInTurns } from './work-in-turns.ts';

test('others have a turn after a long step, and not after a short one', async () => {
  const between = workInTurns();
  let turns = 0;
  setImmediate(() => turns++);
  await between();
  expect(turns).toBe(0);
  const end = performance.now() + 30;
  while (performance.now() < end);
  await between();
  expect(turns).toBe(1);
});
