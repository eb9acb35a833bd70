import { expect, test } from 'vitest';
import { settleAtMost } from './settle-at-most.ts';

test('no more calls than the limit are under way, and each has its result', async () => {
  let underWay = 0;
  let most = 0;
  const results = await settleAtMost(3, [1, 2, 3, 4, 5, 6, 7], async (item) => {
    underWay += 1;
    most = Math.max(most, underWay);
    await new Promise(setImmediate);
    underWay -= 1;
    if (item === 4) throw new Error('four');
    return item * 10;
  });
  expect(most).toBe(3);
  expect(results.map((result) => (result.status === 'fulfilled' ? result.value : result.reason.message))).toEqual([
    10,
    20,
    30,
    'four',
    50,
    60,
    70,
  ]);
});

test('a call that throws at once is rejected', async () => {
  const results = await settleAtMost(2, [1], () => {
    throw new Error('at once');
  });
  expect(results).toMatchObject([{ status: 'rejected' }]);
});
