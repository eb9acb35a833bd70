import { expect, test } from 'vitest';
import { hintsFor } from './hints.ts';
import { interruptedText, outcomeLines } from './shutdown-node.ts';

test('an interrupted shutdown of the node says that the engine continues to end its Pods', () => {
  const hints = hintsFor({ dataDir: '/d' }, {}, undefined, false);
  expect(interruptedText(hints)).toBe(
    "interrupted: the engine continues to end its Pods; 'lifepod shutdown-node --data-dir /d' waits for it again",
  );
});

test('the result of a shutdown of the node names the Pods that had not ended, and claims nothing about others', () => {
  const again = 'static Pods and Pods of controllers run again after the next start of lifepod';
  expect(outcomeLines({ podsLeft: [] })).toEqual([`the Pods have ended; ${again}`]);
  expect(outcomeLines({ podsLeft: ['n/a', 'n/b'] })).toEqual([
    'these Pods had not ended when their grace period was over: n/a, n/b',
    again,
  ]);
});
