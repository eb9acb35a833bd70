import { describe, expect, it, test } from 'vitest';
import type { ApiError } from '../../machinery/status.ts';
import { type Attributes, isPath } from '../../ports/authorizer.ts';
import type { UserInfo } from '../../ports/request.ts';
import { privilegedOr } from './authorization/authorizer.ts';
import { createRbac } from './authorization/rbac.ts';
import { clusterRole, clusterRoleBinding, rbacObjects, rule } from './authorization/rbac-fixture.ts';
import { impersonate } from './impersonate.ts';

const admin: UserInfo = { name: 'admin', groups: ['system:masters'] };
const proxy: UserInfo = { name: 'proxy', groups: ['system:authenticated'] };

const authorizer = privilegedOr(
  createRbac(
    rbacObjects(
      clusterRole(
        'impersonator',
        rule('impersonate', 'users', 'jane'),
        rule('impersonate', 'groups', 'team'),
        rule('impersonate', 'serviceaccounts'),
        {
          apiGroups: ['authentication.k8s.io'],
          resources: ['userextras/scopes'],
          resourceNames: ['a'],
          verbs: ['impersonate'],
        },
      ),
      clusterRoleBinding('proxy', 'impersonator', 'User proxy'),
    ),
  ),
);

const as = (sender: UserInfo, headers: Record<string, string[]>) => impersonate(authorizer, sender, headers);

describe('the impersonated user', () => {
  test.each<[string, Record<string, string[]>, UserInfo]>([
    ['no header', { accept: ['*/*'] }, admin],
    ['a user', { 'impersonate-user': ['jane'] }, { name: 'jane', groups: ['system:authenticated'] }],
    [
      'groups',
      { 'impersonate-user': ['jane'], 'impersonate-group': ['a', 'b'] },
      { name: 'jane', groups: ['a', 'b', 'system:authenticated'] },
    ],
    [
      'the group of unauthenticated users',
      { 'impersonate-user': ['jane'], 'impersonate-group': ['system:unauthenticated'] },
      { name: 'jane', groups: ['system:unauthenticated'] },
    ],
    [
      'the anonymous user',
      { 'impersonate-user': ['system:anonymous'] },
      { name: 'system:anonymous', groups: ['system:unauthenticated'] },
    ],
    [
      'a ServiceAccount',
      { 'impersonate-user': ['system:serviceaccount:ns:bot'] },
      {
        name: 'system:serviceaccount:ns:bot',
        groups: ['system:serviceaccounts', 'system:serviceaccounts:ns', 'system:authenticated'],
      },
    ],
    [
      'a UID and extra values',
      {
        'impersonate-user': ['jane'],
        'impersonate-uid': ['1'],
        'impersonate-extra-a%2fb': ['c', 'd'],
        'impersonate-extra-%zz': ['e'],
      },
      { name: 'jane', uid: '1', groups: ['system:authenticated'], extra: { 'a/b': ['c', 'd'], '%zz': ['e'] } },
    ],
    [
      'a name in UTF-8',
      { 'impersonate-user': [Buffer.from('jürgen', 'utf8').toString('latin1')] },
      { name: 'jürgen', groups: ['system:authenticated'] },
    ],
  ])('%s in the headers of an administrator is the user of the request', async (_, headers, user) => {
    expect(await as(admin, headers)).toEqual(user);
  });
});

describe('the right to impersonate', () => {
  const failure = (headers: Record<string, string[]>) =>
    as(proxy, headers).then(
      () => '',
      (error: ApiError) => `${error.code} ${error.message}`,
    );
  const cannot = (what: string, where = 'at the cluster scope', group = ''): string =>
    `is forbidden: User "proxy" cannot impersonate resource "${what}" in API group "${group}" ${where}`;
  test.each<[string, Record<string, string[]>, string]>([
    ['an allowed user and group', { 'impersonate-user': ['jane'], 'impersonate-group': ['team'] }, ''],
    ['a ServiceAccount', { 'impersonate-user': ['system:serviceaccount:ns:bot'] }, ''],
    ['an allowed extra value', { 'impersonate-user': ['jane'], 'impersonate-extra-scopes': ['a'] }, ''],
    ['another user', { 'impersonate-user': ['root'] }, `403 users "root" ${cannot('users')}`],
    [
      'the group of administrators',
      { 'impersonate-user': ['jane'], 'impersonate-group': ['team', 'system:masters'] },
      `403 groups "system:masters" ${cannot('groups')}`,
    ],
    [
      'another extra value',
      { 'impersonate-user': ['jane'], 'impersonate-extra-scopes': ['a', 'b'] },
      `403 userextras.authentication.k8s.io "b" ${cannot('userextras/scopes', undefined, 'authentication.k8s.io')}`,
    ],
    [
      'a UID',
      { 'impersonate-user': ['jane'], 'impersonate-uid': ['1'] },
      `403 uids.authentication.k8s.io "1" ${cannot('uids', undefined, 'authentication.k8s.io')}`,
    ],
    [
      'a group without a user',
      { 'impersonate-group': ['team'] },
      '400 requested groups, a UID or extra values without impersonating a user',
    ],
  ])('the response to %s', async (_, headers, expected) => {
    expect(await failure(headers)).toBe(expected);
  });
});

it('rights to impersonate are asked for as the sender, before any of them is used', async () => {
  const asked: Attributes[] = [];
  const recording = {
    ...authorizer,
    authorize: async (attributes: Attributes) => {
      asked.push(attributes);
      return { allowed: true, reason: '' };
    },
  };
  await impersonate(recording, proxy, {
    'impersonate-user': ['system:serviceaccount:ns:bot'],
    'impersonate-group': ['g'],
  });
  expect(
    asked.map((each) => (isPath(each) ? each : [each.user.name, each.resource, each.namespace, each.name])),
  ).toEqual([
    ['proxy', 'serviceaccounts', 'ns', 'bot'],
    ['proxy', 'groups', undefined, 'g'],
  ]);
});
