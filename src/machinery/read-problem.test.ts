import { expect, test } from 'vitest';
import { readProblem } from './read-problem.ts';

test.each([
  ['ENOENT', 'does not exist'],
  ['ENOTDIR', 'does not exist'],
  ['EISDIR', 'is a folder'],
  ['EACCES', 'cannot be read: permission denied'],
  ['EIO', 'cannot be read: text of EIO'],
])('the problem with a file that causes %s is: %s', (code, problem) => {
  expect(readProblem(Object.assign(new Error(`text of ${code}`), { code }))).toBe(problem);
});
