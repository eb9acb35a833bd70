import { expect, test } from 'vitest';
import { type PullProgress, pullMessage, quartersDone, reportedPull } from './pull-progress.ts';

const MIB = 1024 * 1024;

test.each<[string, PullProgress | undefined, string | undefined, number]>([
  ['before the pull starts', undefined, undefined, 0],
  ['while waiting for other pulls', { state: 'waiting' }, 'Waiting for other pulls before image "a:1"', 0],
  ['without a known size', { state: 'pulling' }, 'Pulling image "a:1"', 0],
  ['with size 0', { state: 'pulling', doneBytes: 0, totalBytes: 0 }, 'Pulling image "a:1"', 0],
  [
    'at 45%',
    { state: 'pulling', doneBytes: 54 * MIB, totalBytes: 120 * MIB },
    'Pulling image "a:1": 45% of 120 MiB',
    1,
  ],
  [
    'in bytes, rounded down',
    { state: 'pulling', doneBytes: 999, totalBytes: 1000 },
    'Pulling image "a:1": 99% of 1000 B',
    3,
  ],
  [
    'in fractions of a MiB',
    { state: 'pulling', doneBytes: MIB, totalBytes: 1.5 * MIB },
    'Pulling image "a:1": 66% of 1.5 MiB',
    2,
  ],
  [
    'beyond the size, limited to 100%',
    { state: 'pulling', doneBytes: 3 * MIB, totalBytes: 2 * MIB },
    'Pulling image "a:1": 100% of 2.0 MiB',
    4,
  ],
])('the message about the progress of a pull, %s', (_, progress, message, quarters) => {
  expect(pullMessage('a:1', progress)).toBe(message);
  expect(quartersDone(progress)).toBe(quarters);
});

test.each<[PullProgress | undefined, ReturnType<typeof reportedPull>]>([
  [undefined, undefined],
  [{ state: 'waiting' }, undefined],
  [{ state: 'pulling' }, { image: 'a:1', progress: [] }],
  [
    { state: 'pulling', doneBytes: 54 * MIB, totalBytes: 120 * MIB },
    { image: 'a:1', progress: ['45% of 120 MiB'] },
  ],
])('the message about the pull %j can be read', (progress, reported) => {
  expect(reportedPull(pullMessage('a:1', progress))).toEqual(reported);
});

test('another message reports no pull', () => {
  expect(reportedPull('Back-off pulling image "a:1"')).toBeUndefined();
  expect(reportedPull('Pulling image "a:1')).toBeUndefined();
});
