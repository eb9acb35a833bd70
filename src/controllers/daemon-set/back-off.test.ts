import { expect, test } from 'vitest';
import { createBackOff } from './back-off.ts';

const MINUTE = 60_000;

test('the delay after a failure doubles from 1 s to 15 minutes, and is 1 s again after 30 minutes without a failure', () => {
  const backOff = createBackOff();
  const delays: number[] = [];
  let now = 0;
  for (let i = 0; i < 12; i++) {
    backOff.failed('u/1/n', now);
    const until = backOff.until('u/1/n', now) ?? now;
    delays.push((until - now) / 1000);
    now = until;
    expect(backOff.until('u/1/n', now)).toBeUndefined();
  }
  expect(delays).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]);
  now += 31 * MINUTE;
  backOff.failed('u/1/n', now);
  expect(backOff.until('u/1/n', now)).toBe(now + 1000);
});

test('nodes and generations that no longer fail are forgotten', () => {
  const backOff = createBackOff();
  for (let generation = 1; generation <= 5; generation++) backOff.failed(`u/${generation}/n`, 0);
  backOff.failed('u/6/n', 31 * MINUTE);
  expect(backOff.size()).toBe(1);
  backOff.failed('v/1/n', 31 * MINUTE);
  backOff.forget('u/');
  expect(backOff.size()).toBe(1);
});
