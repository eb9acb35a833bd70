import { expect, test } from 'vitest';
import { causeOfMove, type Termination } from './termination.ts';

const BEFORE: Termination = { reason: 'Deleted', startedAt: 0, deadline: 30_000, preExitDeadline: 20_000 };

test.each<[string | undefined, Partial<Termination>]>([
  [undefined, { preExitDeadline: 25_000 }],
  ['a deletion by force', { deadline: 2000, forced: true }],
  ['another deletion with a shorter grace period', { deadline: 2000, deletionGracePeriodSeconds: 2 }],
  ['the node, which ends the Pod with a shorter grace period', { deadline: 2000, nodeGracePeriodSeconds: 2 }],
  ['an outage of the node, which does not count', { deadline: 33_000, outageSeconds: 3 }],
  ['an extension of the grace period', { deadline: 33_000, extendedSeconds: 3, extendedStage: 'PreExit' }],
  ['the reserve of the PostExit entries', { deadline: 33_000 }],
])('the cause of a move is %s', (cause, change) => {
  expect(causeOfMove(BEFORE, { ...BEFORE, ...change })).toBe(cause);
});

test('a termination that has just begun has no cause of a move', () => {
  expect(causeOfMove(undefined, BEFORE)).toBeUndefined();
});
