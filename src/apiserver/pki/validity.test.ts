import { describe, expect, test } from 'vitest';
import { authorityRenewalTime, type Dated, dateText, isDue, overdueTime, renewalTime, validityOf } from './validity.ts';

const NOW = Date.UTC(2026, 0, 31, 9, 30);
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

test.each<[string, number, number, [number, number]]>([
  ['a short one ends its lifetime after now', HOUR, 10 * DAY, [-5 * MINUTE, HOUR]],
  ['a longer one ends its lifetime after its beginning', 8 * HOUR, 10 * DAY, [-5 * MINUTE, 8 * HOUR - 5 * MINUTE]],
  ['none ends after the authority', 365 * DAY, 10 * DAY, [-5 * MINUTE, 10 * DAY]],
])('the validity of a certificate: %s', (_, lifetime, authority, [begin, end]) => {
  expect(validityOf(NOW, lifetime, NOW + authority)).toEqual({ begin: NOW + begin, end: NOW + end });
});

test('an expired authority signs nothing', () => {
  expect(() => validityOf(NOW, HOUR, NOW)).toThrow(
    'the certificate of the authority has expired on 2026-01-31 09:30 UTC',
  );
});

/** `begin` and `end`: relative to NOW. `first`: the first byte of the fingerprint. */
const dated = (begin: number, end: number, first = '00'): Dated => ({
  validFrom: new Date(NOW + begin - 5 * MINUTE).toUTCString(),
  validTo: new Date(NOW + end).toUTCString(),
  fingerprint256: `${first}:12`,
});

describe('the renewal of a certificate', () => {
  test.each([
    ['00', 70],
    ['80', 80],
    ['FF', 90],
  ])('with a fingerprint that begins with %s is due after %i percent of its lifetime', (first, percent) => {
    const share = (renewalTime(dated(0, 100 * DAY, first)) - NOW) / DAY;
    expect(Math.round(share)).toBe(percent);
  });

  test('the renewal of an authority is due after 80 percent of its lifetime, and all renewals are overdue after 95 percent', () => {
    expect(authorityRenewalTime(dated(0, 100 * DAY)) - NOW).toBe(80 * DAY);
    expect(overdueTime(dated(0, 100 * DAY)) - NOW).toBe(95 * DAY);
  });

  test.each<[string, Dated, boolean]>([
    ['a new one is not due', dated(0, 100 * DAY), false],
    ['one is due from its renewal time', dated(-70 * DAY, 30 * DAY), true],
    ['one is not due before', dated(-69 * DAY, 31 * DAY), false],
    ['an expired one is due', dated(-70 * DAY, -1000), true],
    ['one that is not valid yet is due', dated(DAY, 100 * DAY), true],
    ['one whose lifetime is shorter than the time by which it is backdated is due', dated(0, -MINUTE), true],
  ])('%s', (_, certificate, due) => {
    expect(isDue(certificate, NOW)).toBe(due);
  });
});

test('a date is shown in UTC, to the minute', () => {
  expect(dateText(NOW)).toBe('2026-01-31 09:30 UTC');
});
