import fc from 'fast-check';
import { expect, test } from 'vitest';
import { scaleOf } from './scale.ts';
import { exactDuration, ticksOf } from './ticks.ts';

const NONE: ReadonlySet<number> = new Set();
const DAY = 24 * 3600 * 1000;
const labelsOf = (to: number, times: number[], width: number): string[] =>
  ticksOf(scaleOf(0, to, times, width), 0, NONE).map(({ label }) => label);

test.each<[string, number, number, string]>([
  ['17.5 seconds', 17_500, 54, '0s 2s 4s 6s 8s 10s 12s 14s 16s'],
  ['a short life', 900, 50, '0s 0.2s 0.4s 0.6s 0.8s'],
  ['minutes', 320_000, 40, '0s 1m 2m 3m 4m 5m'],
  ['minutes and seconds', 200_000, 60, '0s 30s 1m 1m30s 2m 2m30s 3m'],
  ['a narrow terminal', 17_500, 10, '0s 10s'],
  ['a millisecond', 1, 10, '0s'],
])('the labels of an axis of %s are round times', (_, to, width, labels) => {
  expect(labelsOf(to, [to / 4, to / 2], width).join(' ')).toBe(labels);
});

test('the labels after a shortened period are exact', () => {
  expect(labelsOf(3 * DAY + 9000, [5000, 3 * DAY + 4000], 60).join(' ')).toBe('0s 2s 4s 3d4s 3d6s');
  // One long period is not shortened, and the start always has a label.
  expect(labelsOf(3 * DAY, [], 30).join(' ')).toBe('0s 1d 2d');
  expect(labelsOf(3 * DAY, [3 * DAY - 3000], 30).join(' ')).toMatch(/^0s 2d23h59m5\ds$/);
});

test('ticks overlap neither each other nor reserved columns, are in order, and have their columns', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 10 ** 9 }),
      fc.array(fc.integer({ min: 0, max: 10 ** 9 }), { maxLength: 10 }),
      fc.integer({ min: 10, max: 200 }),
      fc.array(fc.integer({ min: 0, max: 199 }), { maxLength: 5 }),
      (to, times, width, marks) => {
        const scale = scaleOf(0, to, times, width);
        const reserved = new Set(marks);
        const used = new Set<number>();
        let last = -1;
        for (const { column, label } of ticksOf(scale, 0, reserved)) {
          expect(column).toBeGreaterThan(last);
          for (let each = column; each <= column + label.length; each++) {
            expect(used.has(each) || reserved.has(each) || each >= width).toBe(false);
            used.add(each);
          }
          last = column + label.length;
        }
      },
    ),
  );
});

test.each([
  [0, '0s'],
  [250, '0.25s'],
  [20_000, '20s'],
  [60_000, '1m'],
  [90_000, '1m30s'],
  [7_200_000, '2h'],
  [3 * DAY + 4000, '3d4s'],
])('exactDuration formats %i ms as %s', (millis, text) => {
  expect(exactDuration(millis)).toBe(text);
});
