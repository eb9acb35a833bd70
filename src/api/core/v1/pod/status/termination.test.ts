import { expect, test } from 'vitest';
import { causeOfMove, type Termination } from './termination.ts';

const BEFORE: Termination = { reason: 'Deleted', startedAt: 0, deadline: 30_000, preExitDeadline: 20_000 };

test.each<[string | undefined, Partial<Termination>]>([
  [undefined, { preExitDeadline: 25_000 }],
  ['a deletion by force', { deadline: 2000, forced: true }],
  ['another deletion with a shorter grace period', { deadline: 2000, deletionGracePeriodSeconds: 2 }],
  ['a shorter grace period from the node', { deadline: 2000, nodeGracePeriodSeconds: 2 }],
  ['an outage of the node', { deadline: 33_000, outageSeconds: 3 }],
  ['an extension of the grace period', { deadline: 33_000, extendedSeconds: 3, extendedStage: 'PreExit' }],
  ['the reserve of the PostExit entries', { deadline: 33_000 }],
  ['an outage of the node', { deadline: 33_000.5, outageSeconds: 3.0005 }],
  [
    'an extension of the grace period and the reserve of the PostExit entries',
    { deadline: 34_000, extendedSeconds: 3 },
  ],
  [
    'an outage of the node and an extension of the grace period',
    { deadline: 34_500, outageSeconds: 1.5, extendedSeconds: 3 },
  ],
])('the cause of a move is %s', (cause, change) => {
  expect(causeOfMove(BEFORE, { ...BEFORE, ...change })).toBe(cause);
});

test('a termination that has just begun has no cause of a move', () => {
  expect(causeOfMove(undefined, BEFORE)).toBeUndefined();
});
