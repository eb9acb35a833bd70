import { expect, test } from 'vitest';
import { givenUp } from './notices.ts';

const COMMAND = 'pod/p cannot start: no image; make it: sudo bin/lifepod image make busybox:1.28';
const START = 'sudo bin/lifepod up --detach';

test.each([
  [COMMAND, START, `${COMMAND}; if the engine has stopped with this session, first start one: ${START}`],
  [COMMAND, undefined, COMMAND],
  ['pod/p cannot start: fix its command', START, 'pod/p cannot start: fix its command'],
])('a session that gives up says how to start the engine that its advice needs: %s, %s', (because, start, sentence) => {
  expect(givenUp(because, start)).toBe(sentence);
});
