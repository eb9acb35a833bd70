import { expect, test } from 'vitest';
import { newUser } from './new-user.ts';

const YEAR = 8760 * 3_600_000;

test('a group may have a name with spaces', () => {
  expect(newUser({ user: 'jane', group: ['x y'] }, YEAR).groups).toEqual(['x y']);
});

test('a user has each group once, and the longest lifetime by default', () => {
  expect(newUser({ user: 'jane', group: ['dev', 'ops', 'dev'] }, YEAR)).toEqual({
    name: 'jane',
    groups: ['dev', 'ops'],
    lifetimeMillis: YEAR,
    warnings: [],
  });
});

test.each<[string, number, string[]]>([
  ['10m', 600_000, []],
  ['720h', 720 * 3_600_000, []],
  ['9000h', YEAR, ['the certificate is valid for 8760h, the longest time that --cluster-signing-duration allows']],
])('--expires %s gives a lifetime of %i ms', (expires, lifetimeMillis, warnings) => {
  expect(newUser({ user: 'jane', expires }, YEAR)).toMatchObject({ lifetimeMillis, warnings });
});

test.each<[string, Parameters<typeof newUser>[0], string]>([
  ['has no name', { user: ' ' }, '--user has no value: give a name, such as --user jane'],
  ['has a group without a name', { user: 'jane', group: [''] }, '--group has no value'],
  ['has a name with a line break', { user: 'jane\nO=dev' }, '--user "jane\\nO=dev" contains control characters'],
  [
    'has a name with a space',
    { user: 'a b' },
    '--user "a b" contains spaces: give a name without them, such as --user a-b',
  ],
  ['has a long name', { user: 'x'.repeat(65) }, 'has 65 characters, but a certificate allows 64'],
  ['has a short lifetime', { user: 'jane', expires: '9m' }, '--expires "9m" is not a valid lifetime of a certificate'],
  ['has a lifetime in days', { user: 'jane', expires: '30d' }, 'give 10m or more, such as 720h for 30 days'],
  [
    'has an invalid namespace',
    { user: 'jane', namespace: 'B@d' },
    '--namespace "B@d" cannot be the name of a namespace: ',
  ],
  ['has no namespace', { user: 'jane', namespace: '' }, '--namespace "" cannot be the name of a namespace: '],
  [
    'has a reserved name',
    { user: 'system:admin' },
    'names that begin with system: have rights of the system, also the user system:admin: choose',
  ],
  [
    'is in a reserved group',
    { user: 'jane', group: ['a', 'system:nodes'] },
    'names that begin with system: have rights of the system, also the group system:nodes: ',
  ],
  [
    'is an administrator',
    { user: 'jane', group: ['system:masters'] },
    'the group system:masters gives all rights until',
  ],
])('a user is refused who %s', (_, options, message) => {
  expect(() => newUser(options, YEAR)).toThrow(message);
});

test('--force allows reserved names, and warns of the rights of an administrator', () => {
  const node = { user: 'system:node:n1', group: ['system:nodes'], force: true };
  expect(newUser(node, YEAR)).toMatchObject({ name: 'system:node:n1', groups: ['system:nodes'], warnings: [] });
  expect(newUser({ user: 'jane', group: ['system:masters'], force: true }, YEAR).warnings).toEqual([
    'jane gets all rights as a member of system:masters, which cannot be taken back before the certificate expires',
  ]);
});
