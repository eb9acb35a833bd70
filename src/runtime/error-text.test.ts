import { expect, test } from 'vitest';
import { shortCallError } from './error-text.ts';

test.each([
  [
    'container runtime is down: rpc error: code = Unavailable desc = No connection established. Last error: Error: connect ENOENT /run/c.sock',
    'container runtime is down: connect ENOENT /run/c.sock',
  ],
  ['No connection established. Last error: connect ECONNREFUSED /run/c.sock', 'connect ECONNREFUSED /run/c.sock'],
  ['rpc error: code = Unknown desc = no space left on device', 'no space left on device'],
  [
    'container runtime is down: it has not answered for 30 s',
    'container runtime is down: it has not answered for 30 s',
  ],
])('%s is shortened to the reason', (text, short) => {
  expect(shortCallError(text)).toBe(short);
});
