import { expect, test } from 'vitest';
import type { Authorizer, Decision } from '../../../ports/authorizer.ts';
import { firstThatAllows } from './union.ts';

const ask: string[] = [];
const saying = (name: string, decision: Decision, error: string): Authorizer => ({
  authorize: async () => {
    ask.push(name);
    return decision;
  },
  rulesFor: async () => ({ roles: [[{ verbs: [name] }]], errors: error === '' ? [] : [error] }),
});
const yes = saying('yes', { allowed: true, reason: 'because' }, '');
const no = saying('no', { allowed: false, reason: '' }, '');
const never = saying('never', { allowed: false, reason: 'not a' }, 'unknown');
const user = { name: 'jane', groups: [] };
const asked = { user, verb: 'get', path: '/x' };

test.each<[string, Authorizer[], Decision, string[]]>([
  ['the first that allows decides', [no, yes, never], { allowed: true, reason: 'because' }, ['no', 'yes']],
  [
    'none allows: the reasons are joined',
    [never, no, never],
    { allowed: false, reason: 'not a\nnot a' },
    ['never', 'no', 'never'],
  ],
  ['there is none', [], { allowed: false, reason: '' }, []],
])('%s', async (_, authorizers, decision, order) => {
  ask.length = 0;
  expect(await firstThatAllows(authorizers).authorize(asked)).toEqual(decision);
  expect(ask).toEqual(order);
});

test('the rules and the errors of all authorizers are combined', async () => {
  expect(await firstThatAllows([yes, never]).rulesFor(user, '')).toEqual({
    roles: [[{ verbs: ['yes'] }], [{ verbs: ['never'] }]],
    errors: ['unknown'],
  });
});
