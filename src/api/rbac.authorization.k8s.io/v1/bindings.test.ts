import { describe, expect, it, test } from 'vitest';
import { created, headings, row, updated } from '../../testing.ts';
import { clusterRoleBindingKind } from './cluster-role-binding/index.ts';
import { roleBindingKind } from './role-binding/index.ts';

const apiGroup = 'rbac.authorization.k8s.io';
const roleRef = { apiGroup, kind: 'ClusterRole', name: 'view' };

describe('defaults of bindings', () => {
  it('roles, users and groups belong to the group of RBAC, and ServiceAccounts to the core group', () => {
    const subjects = [
      { kind: 'User', name: 'u' },
      { kind: 'Group', name: 'g' },
      { kind: 'ServiceAccount', name: 's', namespace: 'n' },
    ];
    const { object, errors } = created(roleBindingKind, { roleRef: { kind: 'Role', name: 'r' }, subjects });
    expect(errors).toEqual([]);
    expect(object).toMatchObject({
      roleRef: { apiGroup, kind: 'Role', name: 'r' },
      subjects: [{ apiGroup }, { apiGroup }, { kind: 'ServiceAccount' }],
    });
    expect(object.subjects?.[2]).not.toHaveProperty('apiGroup');
  });
});

test.each<[string, object, unknown[]]>([
  [
    'no role',
    {},
    ['roleRef.kind: Unsupported value: "": supported values: "Role", "ClusterRole"', 'roleRef.name: Required value'],
  ],
  [
    'a role of another group',
    { apiGroup: 'a', kind: 'Odd', name: 'a/b' },
    [
      'roleRef.apiGroup: Unsupported value: "a": supported values: "rbac.authorization.k8s.io"',
      'roleRef.kind: Unsupported value: "Odd": supported values: "Role", "ClusterRole"',
      `roleRef.name: Invalid value: "a/b": may not contain '/'`,
    ],
  ],
])('the errors of a RoleBinding with %s', (_, given, errors) => {
  expect(created(roleBindingKind, { roleRef: { kind: '', name: '', ...given } }).errors).toEqual(errors);
});

test.each<[string, object, unknown[]]>([
  ['a user', { kind: 'User', name: 'system:a b' }, []],
  ['no name', { kind: 'User' }, ['subjects[0].name: Required value']],
  [
    'a group of another API group',
    { kind: 'Group', name: 'a', apiGroup: 'b' },
    ['subjects[0].apiGroup: Unsupported value: "b": supported values: "rbac.authorization.k8s.io"'],
  ],
  [
    'a ServiceAccount without a namespace',
    { kind: 'ServiceAccount', name: 'a' },
    ['subjects[0].namespace: Required value'],
  ],
  [
    'an invalid ServiceAccount',
    { kind: 'ServiceAccount', name: 'A', namespace: 'n', apiGroup },
    [
      expect.stringMatching(/^subjects\[0\]\.name: Invalid value: "A": a lowercase RFC 1123 subdomain/),
      'subjects[0].apiGroup: Unsupported value: "rbac.authorization.k8s.io": supported values: ""',
    ],
  ],
  [
    'another kind',
    { kind: 'Pod', name: 'a' },
    ['subjects[0].kind: Unsupported value: "Pod": supported values: "ServiceAccount", "User", "Group"'],
  ],
])('the errors of a ClusterRoleBinding to %s', (_, subject, errors) => {
  expect(created(clusterRoleBindingKind, { roleRef, subjects: [{ name: '', ...subject }] }).errors).toEqual(errors);
});

it('a ClusterRoleBinding cannot grant a Role, and a RoleBinding may name a ServiceAccount without its namespace', () => {
  expect(created(clusterRoleBindingKind, { roleRef: { kind: 'Role', name: 'a' } }).errors).toEqual([
    'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
  ]);
  const subjects = [{ kind: 'ServiceAccount', name: 'a' }];
  expect(created(roleBindingKind, { roleRef, subjects }).errors).toEqual([]);
});

it('the role of a binding cannot change, and its subjects can', () => {
  const subjects = [{ kind: 'User', name: 'u' }];
  expect(updated(roleBindingKind, { roleRef }, { roleRef, subjects }).errors).toEqual([]);
  expect(updated(roleBindingKind, { roleRef }, { roleRef: { kind: 'Role', name: 'edit' } }).errors).toEqual([
    'roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"edit"}: cannot change roleRef',
  ]);
});

it('the table of bindings shows the role and, with -o wide, the subjects', () => {
  expect(headings(roleBindingKind)).toEqual({
    narrow: 'NAME | ROLE | AGE',
    all: 'NAME | ROLE | AGE | USERS | GROUPS | SERVICEACCOUNTS',
  });
  const subjects = [
    { kind: 'User', name: 'u' },
    { kind: 'User', name: 'v' },
    { kind: 'Group', name: 'g' },
    { kind: 'ServiceAccount', name: 's', namespace: 'n' },
    { kind: 'ServiceAccount', name: 't' },
  ];
  const metadata = { creationTimestamp: '2026-01-31T11:59:00Z' };
  expect(row(clusterRoleBindingKind, { metadata, roleRef, subjects })).toEqual([
    'a',
    'ClusterRole/view',
    '60s',
    'u, v',
    'g',
    'n/s, t',
  ]);
});
