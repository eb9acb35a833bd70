import { expect, test } from 'vitest';
import { backupName, expiredBackups } from './backups.ts';

const NOW = Date.parse('2026-01-31T09:30:00.123Z');
const named = (day: string): string => `audit-2026-01-${day}T00-00-00.000.log`;

test.each([
  ['audit.log', 'audit-2026-01-31T09-30-00.123.log'],
  ['audit', 'audit-2026-01-31T09-30-00.123'],
  ['a.b.json', 'a.b-2026-01-31T09-30-00.123.json'],
])('the log %s is rotated to %s', (name, backup) => {
  expect(backupName(name, NOW)).toBe(backup);
});

const others = ['audit.log', 'audit-x.log', 'audit-2026-01-01T00-00-00.000.txt', 'other-2026-01-01T00-00-00.000.log'];

test.each<[string, number, number, string[]]>([
  ['all', 0, 0, []],
  ['the newest two', 2, 0, ['20', '10', '01']],
  ['those of the last two days', 0, 2, ['20', '10', '01']],
  ['the newest one of the last two days', 1, 2, ['30', '20', '10', '01']],
  ['those of the last month', 0, 40, []],
])('rotated logs: %s are kept, and no other files are touched', (_, maxBackups, maxAgeDays, expired) => {
  const names = [named('10'), named('30'), ...others, named('01'), named('20'), named('31')];
  expect(expiredBackups('audit.log', names, { maxBackups, maxAgeDays }, NOW)).toEqual(expired.map(named));
});
