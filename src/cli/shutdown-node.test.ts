import { expect, test } from 'vitest';
import { hintsFor } from './hints.ts';
import { interruptedText } from './shutdown-node.ts';

test('an interrupted shutdown of the node says that the engine continues to end its Pods', () => {
  const hints = hintsFor({ dataDir: '/d' }, {}, undefined, false);
  expect(interruptedText(hints)).toBe(
    "interrupted: the engine continues to end its Pods; 'lifepod shutdown-node --data-dir /d' waits for it again",
  );
});
