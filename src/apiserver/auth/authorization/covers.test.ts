import { describe, expect, it, test } from 'vitest';
import type { PolicyRule } from '../../../api/generated/types.ts';
import { runAtOnce } from '../../../platform/work-in-turns.ts';
import { describeRights, missingRights } from './covers.ts';
import { rule } from './rbac-fixture.ts';

const path = (verbs: string, ...nonResourceURLs: string[]): PolicyRule => ({
  verbs: verbs.split(' '),
  nonResourceURLs,
});
const missing = (held: PolicyRule[], wanted: PolicyRule[]): string[] =>
  describeRights(runAtOnce(missingRights([held], wanted)));

describe('rights that a user does not have', () => {
  test.each<[string, PolicyRule[], PolicyRule[], string[]]>([
    ['the same rule', [rule('get', 'pods')], [rule('get', 'pods')], []],
    ['rights of two rules', [rule('get', 'pods'), rule('list', 'pods')], [rule('get list', 'pods')], []],
    [
      'another verb',
      [rule('get', 'pods')],
      [rule('get list watch', 'pods')],
      ['{APIGroups:[""], Resources:["pods"], Verbs:["list" "watch"]}'],
    ],
    [
      'all verbs',
      [rule('get list', 'pods')],
      [rule('*', 'pods')],
      ['{APIGroups:[""], Resources:["pods"], Verbs:["*"]}'],
    ],
    ['a verb of all', [rule('*', '*')], [rule('*', 'pods/log *')], []],
    [
      'another group',
      [rule('get', 'pods')],
      [{ ...rule('get', 'pods'), apiGroups: ['apps'] }],
      ['{APIGroups:["apps"], Resources:["pods"], Verbs:["get"]}'],
    ],
    [
      'a subresource',
      [rule('get', 'pods')],
      [rule('get', 'pods/log')],
      ['{APIGroups:[""], Resources:["pods/log"], Verbs:["get"]}'],
    ],
    ['a subresource of all resources', [rule('get', '*/scale')], [rule('get', 'pods/scale */scale')], []],
    ['a name', [rule('get', 'pods')], [rule('get', 'pods', 'a')], []],
    [
      'all names',
      [rule('get', 'pods', 'a', '')],
      [rule('get', 'pods')],
      ['{APIGroups:[""], Resources:["pods"], Verbs:["get"]}'],
    ],
    [
      'another name',
      [rule('get', 'pods', 'a')],
      [rule('get', 'pods', 'a', 'b')],
      ['{APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["get"]}'],
    ],
    ['a path', [path('get', '/a/*')], [path('get', '/a/b', '/a/*')], []],
    [
      'other paths',
      [path('get', '/a/*')],
      [path('get', '/a', '/*')],
      ['{NonResourceURLs:["/*"], Verbs:["get"]}', '{NonResourceURLs:["/a"], Verbs:["get"]}'],
    ],
  ])('the missing rights are found for %s', (_, held, wanted, expected) => {
    expect(missing(held, wanted)).toEqual(expected);
  });

  it('a rule with millions of rights is compared up to a limit and then counts as missing', () => {
    const many = (count: number, name: string) => Array.from({ length: count }, (_, index) => `${name}${index}`);
    const wide = { apiGroups: many(200, 'g'), resources: many(200, 'r'), verbs: many(200, 'v') };
    const began = performance.now();
    expect(runAtOnce(missingRights([[{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }]], [wide]))).toEqual([wide]);
    expect(runAtOnce(missingRights([], [wide]))).toHaveLength(1000);
    expect(performance.now() - began).toBeLessThan(10_000);
  });
});
