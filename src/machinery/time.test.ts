import { expect, test } from 'vitest';
import { formatDuration, formatMicroTime, formatTime, parseDuration } from './time.ts';

test.each([
  [0, '0s'],
  [95, '95ms'],
  [1013, '1.013s'],
  [59_500, '59.5s'],
  [60_000, '1m0s'],
  [3_600_000, '1h0m0s'],
  [7_321_500, '2h2m1.5s'],
  [9_223_372_036_001, '2562047h47m16.001s'],
  [1e-6, '1ns'],
  [0.0025, '2.5\u00b5s'],
  [1.5, '1.5ms'],
  [-1.5, '-1.5ms'],
  [-7_200_250, '-2h0m0.25s'],
])('formatDuration() of %d ms is %s', (millis, text) => expect(formatDuration(millis)).toBe(text));

test.each([
  ['0', 0],
  ['90s', 90_000],
  ['1h30m', 5_400_000],
  ['1.5h', 5_400_000],
  ['.5m', 30_000],
  ['1500ms', 1500],
  ['2us', 0.002],
  ['2\u00b5s', 0.002],
  ['2\u03bcs', 0.002],
  ['-0', 0],
  ['-5s', -5000],
  ['+5s', 5000],
])('parseDuration reads %s as %d ms', (text, millis) => expect(parseDuration(text)).toBe(millis));

test.each(['', '5', 's', '-', '1h 30m', '5s and more', '1d', '1.2.3s'])('parseDuration refuses "%s"', (text) =>
  expect(parseDuration(text)).toBeUndefined(),
);

test('parseDuration refuses a very long text at once', () => {
  expect(parseDuration('1'.repeat(500_000))).toBeUndefined();
  expect(parseDuration('1.'.repeat(500_000))).toBeUndefined();
  expect(parseDuration(`${'1h'.repeat(500_000)}x`)).toBeUndefined();
});

test.each([
  [Date.UTC(2026, 0, 31, 9, 30), '2026-01-31T09:30:00'],
  [Date.UTC(9999, 11, 31, 23, 59, 59), '9999-12-31T23:59:59'],
  [Date.UTC(10_000, 0, 1), '9999-12-31T23:59:59'],
  [9e18, '9999-12-31T23:59:59'],
  [Number.POSITIVE_INFINITY, '9999-12-31T23:59:59'],
  [-1e14, '0000-01-01T00:00:00'],
])('formatTime() of %d ms is %s, with a year of four digits', (millis, text) => {
  expect(formatTime(millis)).toBe(`${text}Z`);
  expect(formatMicroTime(millis)).toBe(`${text}.000000Z`);
});

test('formatMicroTime() rounds fractions of a millisecond down to whole microseconds', () => {
  expect(formatMicroTime(Date.UTC(2026, 0, 31) + 1.25)).toBe('2026-01-31T00:00:00.001250Z');
  expect(formatMicroTime(Date.UTC(2026, 0, 31) + 0.5)).toBe('2026-01-31T00:00:00.000500Z');
});
