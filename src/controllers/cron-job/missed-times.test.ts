import { expect, test } from 'vitest';
import { parseSchedule, type Schedule } from '../../api/batch/v1/cron-job/schedule.ts';
import { latestTime, missedTimes } from './missed-times.ts';
import { type ScheduleTimes, scheduleTimes } from './schedule-times.ts';

const YEAR = 365 * 86_400_000;

/** `calls` returns the number of times that were computed. */
function counted(text: string, anchor: string, zone = 'UTC'): { times: ScheduleTimes; calls: () => number } {
  const times = scheduleTimes(parseSchedule(text) as Schedule, zone, Date.parse(anchor));
  let calls = 0;
  const next = (after: number): number | undefined => {
    calls += 1;
    return times.next(after);
  };
  return { times: { next }, calls: () => calls };
}

test.each<[string, string, string, string, string | undefined, boolean]>([
  ['no time yet', '0 * * * *', '2026-01-31T12:00:01Z', '2026-01-31T12:59:59Z', undefined, false],
  ['the first time', '0 * * * *', '2026-01-31T12:00:01Z', '2026-01-31T13:00:00Z', '2026-01-31T13:00:00Z', false],
  ['the last of some', '0 * * * *', '2026-01-31T12:00:00Z', '2026-01-31T18:30:00Z', '2026-01-31T18:00:00Z', false],
  ['the last of 100', '* * * * *', '2026-01-31T12:00:00Z', '2026-01-31T13:40:59Z', '2026-01-31T13:40:00Z', false],
  ['the last of 101', '* * * * *', '2026-01-31T12:00:00Z', '2026-01-31T13:41:00Z', '2026-01-31T13:41:00Z', true],
  ['a year of seconds', '@every 1s', '2025-01-31T12:00:00Z', '2026-01-31T12:00:00.900Z', '2026-01-31T12:00:00Z', true],
  ['@every', '@every 7h', '2026-01-31T12:00:10Z', '2026-02-02T12:00:00Z', '2026-02-02T06:00:10Z', false],
  [
    'none after a gap: Friday afternoon, seen on Sunday',
    '30 6-16/4 * * 1-5',
    '2026-01-30T10:00:00Z',
    '2026-02-01T12:00:00Z',
    undefined,
    false,
  ],
])('the latest missed time is due: %s', (_, schedule, from, now, latest, tooMany) => {
  const { times } = counted(schedule, from);
  const missed = missedTimes(times, Date.parse(from), Date.parse(now));
  expect(missed).toEqual({ ...(latest === undefined ? {} : { latest: Date.parse(latest) }), tooMany });
});

test.each(['0 0 31 2 *', ', * * * *'])('the schedule %s, which has no time, is an error', (schedule) => {
  const { times } = counted(schedule, '2026-01-31T12:00:00Z');
  const now = Date.parse('2026-01-31T12:00:00Z');
  expect(() => missedTimes(times, now, now)).toThrow('time difference between two schedules is less than 1 second');
});

test.each(['@every 1s', '* * * * *', '* * * 1 *', '* * 1 * *', '0 0 29 2 *', '@yearly'])(
  'few times are computed for a year or a century of %s',
  (schedule) => {
    for (const years of [1, 100]) {
      const { times, calls } = counted(schedule, '2026-01-31T23:59:00Z', 'Europe/Berlin');
      const from = Date.parse('2026-01-31T23:59:00Z');
      missedTimes(times, from, from + years * YEAR + 86_400_000);
      expect(calls()).toBeLessThan(60);
    }
  },
);

test('the latest time is found whatever lies between', () => {
  const { times } = counted('0 0 1 1,2,12 *', '2026-01-01T00:00:00Z');
  const at = Date.parse;
  expect(latestTime(times, at('2026-01-01T00:00:00Z'), at('2026-11-30T00:00:00Z'))).toBe(at('2026-02-01T00:00:00Z'));
  expect(latestTime(times, at('2026-01-01T00:00:00Z'), at('2026-12-01T00:00:00Z'))).toBe(at('2026-12-01T00:00:00Z'));
  expect(latestTime(times, at('2026-02-01T00:00:00Z'), at('2026-11-30T00:00:00Z'))).toBeUndefined();
});
