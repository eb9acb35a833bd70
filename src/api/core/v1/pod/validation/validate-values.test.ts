import { expect, it } from 'vitest';
import { fieldErrorText } from '../../../../../machinery/field-error.ts';
import {
  choiceErrors,
  descendingPath,
  fileModeErrors,
  idErrors,
  MAX_INT32,
  nonNegative,
  portErrors,
  positive,
  unreservedPath,
} from './validate-values.ts';

const OCTAL = 'must be a number between 0 and 0777 (octal), both inclusive';
const ID = 'must be between 0 and 2147483647, inclusive';
const PORT = 'must be between 1 and 65535, inclusive';

it.each([
  ['nonNegative', nonNegative, [undefined, 0], [-1], 'must be greater than or equal to 0'],
  ['positive', positive, [undefined, 1], [0], 'must be greater than 0'],
  ['idErrors', idErrors, [undefined, 0, MAX_INT32], [-1, MAX_INT32 + 1], ID],
  ['fileModeErrors', fileModeErrors, [undefined, 0, 0o777], [-1, 0o1000], OCTAL],
  ['portErrors', portErrors, [1, 65_535], [0, 65_536], PORT],
] as const)(
  'the function %s() accepts the values at its bounds and rejects the next ones',
  (_, check, good, bad, text) => {
    for (const value of good) expect(check(value, 'p')).toEqual([]);
    for (const value of bad)
      expect(check(value, 'p').map(fieldErrorText)).toEqual([`p: Invalid value: ${value}: ${text}`]);
  },
);

it('a port may be given by its name, and an absent port is 0', () => {
  expect(portErrors('web', 'p')).toEqual([]);
  expect(portErrors('a--b', 'p').map(fieldErrorText)).toEqual([
    'p: Invalid value: "a--b": must not contain consecutive hyphens',
  ]);
  expect(portErrors(undefined, 'p').map(fieldErrorText)).toEqual([`p: Invalid value: 0: ${PORT}`]);
});

it('a choice is required and must be one of the values', () => {
  const errors = (value: string | undefined) => choiceErrors(value, 'p', ['a', 'b']).map(fieldErrorText);
  expect([errors('a'), errors(''), errors(undefined), errors('c')]).toEqual([
    [],
    ['p: Required value'],
    ['p: Required value'],
    ['p: Unsupported value: "c": supported values: "a", "b"'],
  ]);
});

it.each<[string, string[], string[]]>([
  ['a/b', [], []],
  ['..a/b', [], ["must not start with '..'"]],
  ['a/..b', [], []],
  ['..', ["must not contain '..'"], ["must not contain '..'", "must not start with '..'"]],
  ['../../a', ["must not contain '..'"], ["must not contain '..'"]],
  ['../a', ["must not contain '..'"], ["must not contain '..'"]],
  ['/a', ['must be a relative path'], ['must be a relative path']],
])('the path %s is checked as a relative path and as a path in a volume', (path, descending, unreserved) => {
  const shown = (texts: string[]) => texts.map((text) => `p: Invalid value: "${path}": ${text}`);
  expect(descendingPath(path, 'p').map(fieldErrorText)).toEqual(shown(descending));
  expect(unreservedPath(path, 'p').map(fieldErrorText)).toEqual(shown(unreserved));
});
