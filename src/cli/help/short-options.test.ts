import { expect, test } from 'vitest';
import { program } from '../main.ts';
import { plainValues } from './short-options.ts';

test.each([
  ['status -o=json', ['status', '-o', 'json']],
  ['why web -n=', ['why', 'web', '-n', '']],
  ['run x -e=A=B -- tar -n=1', ['run', 'x', '-e', 'A=B', '--', 'tar', '-n=1']],
  ['logs web -f=true --tail=1 -cweb', ['logs', 'web', '-f=true', '--tail=1', '-cweb']],
])('a short option of lifepod may have an equals sign before its value: %s', (line, words) => {
  expect(plainValues(program, line.split(' '))).toEqual(words);
});
