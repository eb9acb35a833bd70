import { describe, expect, it, test } from 'vitest';
import { created, headings, row } from '../../testing.ts';
import { clusterRoleKind } from './cluster-role/index.ts';
import { roleKind } from './role/index.ts';

const pods = { apiGroups: [''], resources: ['pods'], verbs: ['get'] };

describe('rules of Roles and ClusterRoles', () => {
  test.each<[string, object, string[]]>([
    ['about resources', pods, []],
    [
      'without verbs',
      { ...pods, verbs: [] },
      ['rules[0].verbs: Required value: verbs must contain at least one value'],
    ],
    [
      'without groups and resources',
      { verbs: ['get'] },
      [
        'rules[0].apiGroups: Required value: resource rules must supply at least one api group',
        'rules[0].resources: Required value: resource rules must supply at least one resource',
      ],
    ],
    [
      'about resources and paths',
      { ...pods, nonResourceURLs: ['/a'] },
      [
        'rules[0].nonResourceURLs: Invalid value: ["/a"]: rules cannot apply to both regular resources and non-resource URLs',
      ],
    ],
  ])('the errors of a ClusterRole with a rule %s', (_, rule, errors) => {
    expect(created(clusterRoleKind, { rules: [rule] }).errors).toEqual(errors);
  });

  it('only ClusterRoles have rules about paths', () => {
    const rules = [{ verbs: ['get'], nonResourceURLs: ['/healthz'] }];
    expect(created(clusterRoleKind, { rules }).errors).toEqual([]);
    expect(created(roleKind, { rules }).errors).toEqual([
      'rules[0].nonResourceURLs: Invalid value: ["/healthz"]: namespaced rules cannot apply to non-resource URLs',
    ]);
  });

  it('names of roles may contain colons', () => {
    expect(created(roleKind, { metadata: { name: 'system:a' }, rules: [pods] }).errors).toEqual([]);
    expect(created(clusterRoleKind, { metadata: { name: 'a/b' } }).errors).toEqual([
      `metadata.name: Invalid value: "a/b": may not contain '/'`,
    ]);
  });
});

test.each<[string, object, string[]]>([
  ['a selector', { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] }, []],
  [
    'no selector',
    {},
    [
      'aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if aggregationRule is non-nil',
    ],
  ],
  [
    'an invalid selector',
    { clusterRoleSelectors: [{ matchExpressions: [{ key: 'a', operator: 'Odd' }] }] },
    [
      'aggregationRule.clusterRoleSelectors[0].matchExpressions[0].operator: Invalid value: "Odd": not a valid selector operator',
    ],
  ],
])('the errors of a ClusterRole whose aggregationRule has %s', (_, aggregationRule, errors) => {
  expect(created(clusterRoleKind, { aggregationRule }).errors).toEqual(errors);
});

it('the tables of roles show when they were created', () => {
  for (const kind of [roleKind, clusterRoleKind] as (typeof roleKind)[]) {
    expect(headings(kind).all).toBe('NAME | CREATED AT');
    expect(row(kind, { metadata: { creationTimestamp: '2026-01-31T11:59:00Z' } })).toEqual([
      'a',
      '2026-01-31T11:59:00Z',
    ]);
  }
});
