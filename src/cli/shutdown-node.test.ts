import { expect, test } from 'vitest';
import { hintsFor } from './hints.ts';
import { interruptedText } from './shutdown-node.ts';

test('an interrupted shutdown of the node says whether the engine continues to end its Pods', () => {
  const hints = hintsFor({ dataDir: '/d' }, {}, undefined, false);
  const again = "'lifepod shutdown-node --data-dir /d'";
  expect(interruptedText(true, hints)).toBe(
    `interrupted: the engine continues to end its Pods; ${again} waits for it again`,
  );
  expect(interruptedText(false, hints)).toBe(
    `interrupted before the engine began to end its Pods: type ${again} again`,
  );
});
