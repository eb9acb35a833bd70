import { expect, test } from 'vitest';
import { formatDuration } from './time.ts';

test.each([
  [0, '0s'],
  [95, '95ms'],
  [1013, '1.013s'],
  [59_500, '59.5s'],
  [60_000, '1m0s'],
  [3_600_000, '1h0m0s'],
  [7_321_500, '2h2m1.5s'],
])('a duration of %i ms is %s', (millis, text) => expect(formatDuration(millis)).toBe(text));
