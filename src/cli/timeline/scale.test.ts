import fc from 'fast-check';
import { expect, test } from 'vitest';
import { scaleOf, shortDuration } from './scale.ts';

test('later times have the same or a later column, and timeAt is the inverse of column', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 10 ** 9 }),
      fc.array(fc.integer({ min: 0, max: 10 ** 9 }), { maxLength: 20 }),
      fc.integer({ min: 10, max: 200 }),
      (to, times, width) => {
        const scale = scaleOf(0, to, times, width);
        expect([scale.column(0), scale.column(to)]).toEqual([0, width - 1]);
        const sorted = times.filter((at) => at <= to).sort((a, b) => a - b);
        const columns = sorted.map(scale.column);
        expect(columns).toEqual([...columns].sort((a, b) => a - b));
        for (let column = 0; column < width; column++)
          expect(Math.abs(scale.column(scale.timeAt(column + 0.5)) - column)).toBeLessThanOrEqual(1);
      },
    ),
  );
});

test('only a gap that is long compared with the rest is cut from the scale', () => {
  expect(scaleOf(0, 100, [10, 50], 50).cuts).toEqual([]);
  const scale = scaleOf(0, 1_000_000, [5000, 995_000], 60);
  expect(scale.cuts).toHaveLength(1);
  expect(scale.column(5000)).toBeGreaterThan(15);
});

test.each([
  [0, '0s'],
  [5, '0.01s'],
  [1234, '1.23s'],
  [9996, '10.0s'],
  [12_340, '12.3s'],
  [59_960, '1m00s'],
  [185_000, '3m05s'],
  [7_500_000, '2h05m'],
  [3.5 * 86_400_000, '3d12h'],
  [-1500, '-1.50s'],
])('shortDuration formats %i ms as %s', (millis, text) => {
  expect(shortDuration(millis)).toBe(text);
});
