import { expect, test } from 'vitest';
import { settleAtMost } from './settle.ts';

test('settleAtMost runs no more calls than the limit at a time and returns all results in order', async () => {
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

test('settleAtMost reports a call that throws synchronously as rejected', async () => {
  const results = await settleAtMost(2, [1], () => {
    throw new Error('at once');
  });
  expect(results).toMatchObject([{ status: 'rejected' }]);
});
