import { expect, test } from 'vitest';
import { causesOfMoves } from './termination-end.ts';

const OUTAGE = 'an outage of the node';
const EXTENSION = 'an extension of the grace period';
const RESERVE = 'the reserve of the PostExit entries';

test.each([
  [[EXTENSION, `${OUTAGE} and ${EXTENSION}`], `${EXTENSION} and ${OUTAGE}`],
  [[`${OUTAGE} and ${EXTENSION}`, RESERVE], `${OUTAGE}, ${EXTENSION} and ${RESERVE}`],
  [[`${OUTAGE}, which does not count`, `${OUTAGE} and ${RESERVE}`], `${OUTAGE} and ${RESERVE}`],
])('the causes %j are "%s"', (messages, expected) => {
  const steps = ['', ...messages].map((message, i) => ({
    key: `${i}`,
    type: 'DeadlineSet',
    at: i * 1000,
    deadline: (i + 1) * 3000,
    message,
  }));
  expect(causesOfMoves(steps, { key: 'began', type: 'TerminationBegan', at: 0 })).toBe(expected);
});
