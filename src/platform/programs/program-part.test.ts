import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { programPart } from './program-part.ts';

const absent = './absent.ts';

test.each([
  ['module', () => import(absent)],
  ['file', () => readFile(new URL(absent, import.meta.url))],
])('a missing %s of the program is an error of the server that says what to do', async (_kind, load) => {
  await expect(programPart(load)).rejects.toMatchObject({
    code: 500,
    message: expect.stringMatching(
      /: the program of lifepod in \/.*[^/] was removed or replaced while the engine runs: install lifepod again, and restart the engine \(.*absent\.ts/,
    ),
  });
});

test('other errors of a part of the program are not changed', async () => {
  const error = new Error('other');
  await expect(programPart(() => Promise.reject(error))).rejects.toBe(error);
});
