import { expect, test } from 'vitest';
import { type LogCommandOptions, logQuery, logRequest, plainFlags } from './log-options.ts';

const query = (options: LogCommandOptions): string => logQuery('app', logRequest(options));

test('the query of a log contains the given options and no others', () => {
  expect(query({})).toBe('?container=app');
  expect(query({ follow: true, previous: true, timestamps: true })).toBe(
    '?container=app&follow=true&previous=true&timestamps=true',
  );
  expect(query({ tail: '-1', limitBytes: '0', since: '0' })).toBe('?container=app');
  expect(query({ tail: '0' })).toBe('?container=app&tailLines=0');
  expect(query({ tail: '20', limitBytes: '500' })).toBe('?container=app&tailLines=20&limitBytes=500');
  expect(query({ sinceTime: '2026-01-31T09:30:00Z' })).toBe('?container=app&sinceTime=2026-01-31T09%3A30%3A00Z');
});

test.each([
  ['5s', 5],
  ['2m', 120],
  ['1h30m', 5400],
  ['1.5h', 5400],
  ['1500ms', 2],
  ['.5m', 30],
])('--since %s becomes sinceSeconds=%i', (since, seconds) => {
  expect(query({ since })).toBe(`?container=app&sinceSeconds=${seconds}`);
});

test.each<[LogCommandOptions, string]>([
  [{ allContainers: true, container: 'app' }, '--all-containers=true should not be specified with container name app'],
  [{ since: '1s', sinceTime: '2026-01-31T09:30:00Z' }, 'at most one of `sinceTime` or `sinceSeconds` may be specified'],
  [{ sinceTime: '2026' }, '--since-time "2026" is not an RFC 3339 time'],
  [{ sinceTime: 'yesterday' }, '--since-time "yesterday" is not an RFC 3339 time'],
  [{ since: '-5s' }, '--since must be greater than 0'],
  [{ since: '5' }, '--since "5" is not a duration such as 5s, 2m or 3h'],
  [{ since: '5s and more' }, '--since "5s and more" is not a duration such as 5s, 2m or 3h'],
  [{ tail: '-2' }, '--tail must be greater than or equal to -1'],
  [{ tail: '2.5' }, '--tail "2.5" is not a whole number'],
  [{ limitBytes: '-1' }, '--limit-bytes must be greater than 0'],
])('lifepod logs refuses the options %j: %s', (options, message) => {
  expect(() => logRequest(options)).toThrow(new Error(message).message);
});

test('boolean flags accept the values true and false, as in kubectl', () => {
  expect(plainFlags(['logs', 'app', '--all-containers=true', '-f=true', '--tail=1', '-c=x'])).toEqual([
    'logs',
    'app',
    '--all-containers',
    '-f',
    '--tail=1',
    '-c=x',
  ]);
  expect(plainFlags(['--follow=false', '--prefix=false', '--follow=maybe'])).toEqual(['--no-prefix', '--follow=maybe']);
});
