import { Cron } from 'croner';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseSchedule, type Schedule } from '../../api/batch/v1/cron-job/schedule.ts';
import { formatLocalTime, offsetAt, offsetChange } from './local-time.ts';
import { scheduleTimes } from './schedule-times.ts';

const seed = Number(process.env['LIFEPOD_SEED']);
console.log(`times of schedules: seed ${seed} (LIFEPOD_SEED sets it)`);

const BERLIN = 'Europe/Berlin';
const parsed = (text: string): Schedule => {
  const schedule = parseSchedule(text);
  if (typeof schedule === 'string') throw new Error(schedule);
  return schedule;
};
function timesAfter(text: string, after: string, zone = 'UTC', count = 1): (string | undefined)[] {
  const times = scheduleTimes(parsed(text), zone, Date.parse(after));
  const found: (string | undefined)[] = [];
  for (let at: number | undefined = Date.parse(after); at !== undefined && found.length < count; ) {
    at = times.next(at);
    found.push(at === undefined ? undefined : formatLocalTime(zone, at));
  }
  return found;
}

test.each<[string, string, string | undefined]>([
  ['* * * * *', '2026-01-31T12:00:00Z', '2026-01-31T12:01:00Z'],
  ['* * * * *', '2026-01-31T11:59:59.999Z', '2026-01-31T12:00:00Z'],
  ['*/15 * * * *', '2026-01-31T23:45:00Z', '2026-02-01T00:00:00Z'],
  ['5/20 * * * *', '2026-01-31T12:05:00Z', '2026-01-31T12:25:00Z'],
  ['50/90 * * * *', '2026-01-31T12:00:00Z', '2026-01-31T12:50:00Z'],
  ['0 22-23/2 * * *', '2026-01-31T22:00:00Z', '2026-02-01T22:00:00Z'],
  ['1,1,1 ? * * ?', '2026-01-31T12:00:00Z', '2026-01-31T12:01:00Z'],
  ['0 0 * feb-MAR sun', '2026-04-01T00:00:00Z', '2027-02-07T00:00:00Z'],
  ['0 0 29 2 *', '2026-01-31T12:00:00Z', '2028-02-29T00:00:00Z'],
  ['@yearly', '2026-01-31T12:00:00Z', '2027-01-01T00:00:00Z'],
  ['@annually', '2026-01-31T12:00:00Z', '2027-01-01T00:00:00Z'],
  ['@monthly', '2026-01-31T12:00:00Z', '2026-02-01T00:00:00Z'],
  ['@weekly', '2026-01-31T12:00:00Z', '2026-02-01T00:00:00Z'],
  ['@daily', '2026-01-31T12:00:00Z', '2026-02-01T00:00:00Z'],
  ['@midnight', '2026-01-31T12:00:00Z', '2026-02-01T00:00:00Z'],
  ['@hourly', '2026-01-31T12:00:00Z', '2026-01-31T13:00:00Z'],
])('the schedule %s has after %s the time %s', (schedule, after, next) => {
  expect(timesAfter(schedule, after)).toEqual([next]);
});

test.each<[string, string, string]>([
  ['a day of the month and a weekday: one of them matches', '0 0 15 * mon', '2026-02-02 2026-02-09 2026-02-15'],
  ['a step over the days of the month counts as a restriction', '0 0 */16 * mon', '2026-02-01 2026-02-02 2026-02-09'],
  ['all weekdays, but not as *, count as a restriction', '0 0 15 * 0-6', '2026-02-01 2026-02-02 2026-02-03'],
  ['any day of the month: the weekday decides', '0 0 * * mon', '2026-02-02 2026-02-09 2026-02-16'],
  ['any weekday: the day of the month decides', '0 0 15 * ?', '2026-02-15 2026-03-15 2026-04-15'],
  ['a list with *: the weekday decides', '0 0 *,15 * mon', '2026-02-02 2026-02-09 2026-02-16'],
  ['no day of the month: the weekday decides', '0 0 , * mon', '2026-02-02 2026-02-09 2026-02-16'],
  ['no weekday: the day of the month decides', '0 0 15 * ,', '2026-02-15 2026-03-15 2026-04-15'],
])('%s', (_, schedule, days) => {
  const times = days.split(' ').map((day) => `${day}T00:00:00Z`);
  expect(timesAfter(schedule, '2026-01-31T12:00:00Z', 'UTC', 3)).toEqual(times);
});

test.each([
  '0 0 31 2 *',
  '0 0 30 2 *',
  '59 23 31 4,6,9,11 *',
  ', * * * *',
  '* , * * *',
  '* * , * *',
  '* * * , *',
  '* * * * ,',
  '* * , * ,',
])('the schedule %s has no time', (schedule) => {
  expect(timesAfter(schedule, '2026-01-31T12:00:00Z', BERLIN)).toEqual([undefined]);
});

test('a time that is more than five years away counts as none', () => {
  expect(timesAfter('0 0 29 2 *', '2096-03-01T00:00:00Z')).toEqual([undefined]);
});

test.each<[string, string[]]>([
  ['@every 1s', ['2026-01-31T12:00:01Z', '2026-01-31T12:00:02Z']],
  ['@every 1.9s', ['2026-01-31T12:00:01Z', '2026-01-31T12:00:02Z']],
  ['@every 90m', ['2026-01-31T13:30:00Z', '2026-01-31T15:00:00Z']],
  ['@every 5ms', ['2026-01-31T12:00:01Z', '2026-01-31T12:00:02Z']],
  ['@every -1h', ['2026-01-31T12:00:01Z', '2026-01-31T12:00:02Z']],
])('%s counts whole seconds from its anchor', (schedule, times) => {
  expect(timesAfter(schedule, '2026-01-31T12:00:00Z', 'UTC', 2)).toEqual(times);
});

test('@every keeps the distance from its anchor, wherever the search begins', () => {
  const anchor = Date.parse('2026-01-31T12:00:07Z');
  const { next } = scheduleTimes(parsed('@every 1h'), 'UTC', anchor + 500);
  expect(next(anchor - 86_400_000)).toBe(anchor + 3_600_000);
  expect(next(anchor + 9_000_000)).toBe(anchor + 3 * 3_600_000);
  expect(next(anchor + 3 * 3_600_000)).toBe(anchor + 4 * 3_600_000);
});

describe('when the clock of the time zone changes', () => {
  test.each<[string, string, string, string[]]>([
    ['a time that is skipped does not come', '30 2 * * *', '2026-03-28T12:00:00Z', ['2026-03-30T02:30:00+02:00']],
    [
      'a time that comes twice is used twice',
      '30 2 * * *',
      '2026-10-24T12:00:00Z',
      ['2026-10-25T02:30:00+02:00', '2026-10-25T02:30:00+01:00', '2026-10-26T02:30:00+01:00'],
    ],
    [
      'each hour that exists comes',
      '0 * * * *',
      '2026-03-29T00:30:00Z',
      ['2026-03-29T03:00:00+02:00', '2026-03-29T04:00:00+02:00'],
    ],
    [
      'each hour that comes twice is used twice',
      '0 1-3 * * *',
      '2026-10-24T22:30:00Z',
      ['01:00:00+02:00', '02:00:00+02:00', '02:00:00+01:00', '03:00:00+01:00'].map((time) => `2026-10-25T${time}`),
    ],
    ['other times stay the same', '0 5 * * *', '2026-03-28T12:00:00Z', ['2026-03-29T05:00:00+02:00']],
  ])('%s', (_, schedule, after, times) => {
    expect(timesAfter(schedule, after, BERLIN, times.length)).toEqual(times);
  });

  test('a midnight that does not exist is skipped', () => {
    const times = ['2018-11-03T00:00:00-03:00', '2018-11-05T00:00:00-02:00'];
    expect(timesAfter('0 0 * * *', '2018-11-02T12:00:00Z', 'America/Sao_Paulo', 2)).toEqual(times);
  });

  test('a change by half an hour moves the times by half an hour', () => {
    const times = ['2026-10-04T02:45:00+11:00', '2026-10-05T02:45:00+11:00'];
    expect(timesAfter('45 2 * * *', '2026-10-03T12:00:00Z', 'Australia/Lord_Howe', 2)).toEqual(times);
    expect(timesAfter('15 2 * * *', '2026-10-03T12:00:00Z', 'Australia/Lord_Howe')).toEqual([
      '2026-10-05T02:15:00+11:00',
    ]);
  });

  test('croner alone would run a skipped time after the change, and a time that comes twice once', () => {
    const cron = new Cron('30 2 * * *', { paused: true, timezone: BERLIN });
    const next = (after: string): string | undefined => cron.nextRun(new Date(after))?.toISOString();
    expect(next('2026-03-28T12:00:00Z')).toBe('2026-03-29T01:00:00.000Z');
    expect(next('2026-10-25T00:30:00Z')).toBe('2026-10-26T01:30:00.000Z');
  });
});

const ZONES = [BERLIN, 'America/New_York', 'Australia/Lord_Howe', 'Africa/Casablanca', 'Asia/Kathmandu', 'UTC'];
const field = (min: number, max: number): fc.Arbitrary<string> =>
  fc.oneof(
    fc.constant('*'),
    fc.integer({ min, max }).map(String),
    fc.integer({ min: 2, max: 40 }).map((step) => `*/${step}`),
    fc.tuple(fc.integer({ min, max }), fc.integer({ min, max })).map((ends) => ends.sort((a, b) => a - b).join('-')),
  );
const schedules = fc
  .tuple(field(0, 59), field(0, 23), field(1, 28), fc.constant('*'), field(0, 6))
  .map((fields) => fields.join(' '));

function matches({ fields: [minutes, hours, days, , weekdays] }: Schedule, zone: string, at: number): boolean {
  const local = new Date(at + offsetAt(zone, at));
  const day = days?.values.includes(local.getUTCDate()) === true;
  const weekday = weekdays?.values.includes(local.getUTCDay()) === true;
  const isDay = days?.isAny === true || weekdays?.isAny === true ? day && weekday : day || weekday;
  const isTime = minutes?.values.includes(local.getUTCMinutes()) && hours?.values.includes(local.getUTCHours());
  return isDay && isTime === true;
}

test('the next time is the first minute that matches, also around a change of the clock', () => {
  const changes = ['2026-02-15T02:00Z', '2026-03-22T02:00Z', '2026-03-29T01:00Z', '2026-04-04T15:00Z'];
  const starts = fc.tuple(fc.constantFrom(...changes), fc.integer({ min: -36 * 60, max: 36 * 60 }));
  const property = fc.property(schedules, fc.constantFrom(...ZONES), starts, (text, zone, [change, minutes]) => {
    const schedule = parsed(text);
    const after = Date.parse(change) + minutes * 60_000;
    const next = scheduleTimes(schedule, zone, 0).next(after) ?? Number.POSITIVE_INFINITY;
    const end = Math.min(next, after + 2 * 86_400_000);
    for (let at = after + 60_000; at < end; at += 60_000) expect(matches(schedule, zone, at)).toBe(false);
    if (next !== Number.POSITIVE_INFINITY) expect(matches(schedule, zone, next)).toBe(true);
  });
  fc.assert(property, { numRuns: 60, ...(Number.isNaN(seed) ? {} : { seed }) });
});

test('the offset of a time zone changes at the exact time', () => {
  const change = Date.parse('2026-03-29T01:00:00Z');
  expect(offsetChange(BERLIN, change - 90 * 86_400_000, change + 1000)).toBe(change);
  expect(offsetChange(BERLIN, change - 1, change)).toBe(change);
  expect(offsetChange(BERLIN, change, change + 90 * 86_400_000)).toBeUndefined();
  expect(offsetChange(BERLIN, change, change)).toBeUndefined();
});
