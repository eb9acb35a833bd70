import { describe, expect, it, test } from 'vitest';
import type { PolicyRule } from '../../../api/generated/types.ts';
import type { Authorizer } from '../../../ports/authorizer.ts';
import type { UserInfo } from '../../../ports/request.ts';
import { privilegedOr } from './authorizer.ts';
import { createRbac } from './rbac.ts';
import { clusterRole, clusterRoleBinding, rbacObjects, role, roleBinding, rule } from './rbac-fixture.ts';

const AUTHENTICATED = 'system:authenticated';
const user = (name: string, ...groups: string[]): UserInfo => ({ name, groups: [...groups, AUTHENTICATED] });
const account = (namespace: string, name: string): UserInfo =>
  user(`system:serviceaccount:${namespace}:${name}`, 'system:serviceaccounts', `system:serviceaccounts:${namespace}`);

const READ = 'get list watch';
const authorizer = privilegedOr(
  createRbac(
    rbacObjects(
      clusterRole('everything', { apiGroups: ['*'], resources: ['*'], verbs: ['*'] }),
      clusterRole('discovery', { nonResourceURLs: ['/version', '/api', '/apis/*'], verbs: ['get'] }),
      clusterRole('view', rule(READ, 'pods pods/log services namespaces')),
      clusterRole('scaler', { apiGroups: ['apps'], resources: ['*/scale'], verbs: ['update'] }),
      role('a', 'one-secret', rule('get update', 'secrets', 'tls')),
      role('a', 'execute', rule('create', 'pods/exec')),
      role('b', 'all-pods', rule('*', 'pods')),
      clusterRoleBinding('root', 'everything', 'User root'),
      clusterRoleBinding('discovery', 'discovery', `Group ${AUTHENTICATED}`),
      clusterRoleBinding('viewers', 'view', 'Group viewers'),
      clusterRoleBinding('broken', 'absent', 'User broken'),
      roleBinding('a', 'jane', 'ClusterRole view', 'User jane', 'ServiceAccount bot'),
      roleBinding('a', 'tls', 'Role one-secret', 'User jane'),
      roleBinding('a', 'scale', 'ClusterRole scaler', 'ServiceAccount b/bot'),
      roleBinding('a', 'exec', 'Role execute', 'Group viewers'),
      roleBinding('b', 'jane', 'Role all-pods', 'User jane'),
      roleBinding('b', 'broken', 'Role absent', 'User broken'),
    ),
  ),
);

const USERS: Record<string, UserInfo> = {
  admin: user('kubernetes-admin', 'system:masters'),
  root: user('root'),
  jane: user('jane'),
  viewer: user('v', 'viewers'),
  'bot of a': account('a', 'bot'),
  'bot of b': account('b', 'bot'),
  nobody: user('nobody'),
};

/** `request`: such as `get pods/log a/name`, `list pods a`, `get secrets.apps` or `get /version`. */
function ask(by: Authorizer, who: UserInfo, request: string) {
  const [verb = '', what = '', where = ''] = request.split(' ');
  if (what.startsWith('/')) return by.authorize({ user: who, verb, path: what });
  const [named = '', subresource] = what.split('/');
  const [resource = '', ...group] = named.split('.');
  const [namespace, name] = where.split('/');
  return by.authorize({ user: who, verb, group: group.join('.'), resource, subresource, namespace, name });
}

describe('the decisions of RBAC', () => {
  test.each<[string, string[]]>([
    ['get /version', ['admin', 'root', 'jane', 'viewer', 'bot of a', 'bot of b', 'nobody']],
    ['get /apis/apps/v1', ['admin', 'root', 'jane', 'viewer', 'bot of a', 'bot of b', 'nobody']],
    ['get /apis', ['admin']],
    ['post /version', ['admin']],
    ['get /metrics', ['admin']],
    ['list pods a', ['admin', 'root', 'jane', 'viewer', 'bot of a']],
    ['watch pods a', ['admin', 'root', 'jane', 'viewer', 'bot of a']],
    ['list pods', ['admin', 'root', 'viewer']],
    ['get pods b/x', ['admin', 'root', 'jane', 'viewer']],
    ['delete pods b/x', ['admin', 'root', 'jane']],
    ['deletecollection pods b', ['admin', 'root', 'jane']],
    ['delete pods a/x', ['admin', 'root']],
    ['get pods/log a/x', ['admin', 'root', 'jane', 'viewer', 'bot of a']],
    ['get pods/log b/x', ['admin', 'root', 'viewer']],
    ['create pods/exec a/x', ['admin', 'root', 'viewer']],
    ['get pods/exec a/x', ['admin', 'root']],
    ['create pods/exec b/x', ['admin', 'root']],
    ['get namespaces a/a', ['admin', 'root', 'jane', 'viewer', 'bot of a']],
    ['list namespaces', ['admin', 'root', 'viewer']],
    ['get secrets a/tls', ['admin', 'root', 'jane']],
    ['get secrets a/other', ['admin', 'root']],
    ['list secrets a', ['admin', 'root']],
    ['list secrets a/tls', ['admin', 'root']],
    ['update secrets a/tls', ['admin', 'root', 'jane']],
    ['create secrets a', ['admin', 'root']],
    ['update deployments.apps/scale a/x', ['admin', 'root', 'bot of b']],
    ['update replicasets.apps/scale a/x', ['admin', 'root', 'bot of b']],
    ['update deployments.apps a/x', ['admin', 'root']],
    ['update deployments.apps/status a/x', ['admin', 'root']],
    ['update replicationcontrollers/scale a/x', ['admin', 'root']],
    ['get pods.metrics.k8s.io a', ['admin', 'root']],
    ['impersonate users /jane', ['admin', 'root']],
  ])('%s is allowed only to those whom a role allows it', async (request, expected) => {
    const allowed: string[] = [];
    for (const [name, who] of Object.entries(USERS))
      if ((await ask(authorizer, who, request)).allowed) allowed.push(name);
    expect(allowed).toEqual(expected);
  });
});

describe('the reasons of RBAC', () => {
  test.each<[string, UserInfo, string, string]>([
    [
      'a user',
      user('root'),
      'get pods b',
      'RBAC: allowed by ClusterRoleBinding "root" of ClusterRole "everything" to User "root"',
    ],
    [
      'a group',
      user('v', 'viewers'),
      'create pods/exec a/x',
      'RBAC: allowed by RoleBinding "exec/a" of Role "execute" to Group "viewers"',
    ],
    [
      'a ServiceAccount of the namespace of the binding',
      account('a', 'bot'),
      'list pods a',
      'RBAC: allowed by RoleBinding "jane/a" of ClusterRole "view" to ServiceAccount "bot/a"',
    ],
    ['no role', user('nobody'), 'list pods a', ''],
    [
      'an absent ClusterRole',
      user('broken'),
      'list pods',
      'RBAC: clusterrole.rbac.authorization.k8s.io "absent" not found',
    ],
    [
      'several absent roles',
      user('broken'),
      'list pods b',
      'RBAC: [clusterrole.rbac.authorization.k8s.io "absent" not found, role.rbac.authorization.k8s.io "absent" not found]',
    ],
  ])('the reason for a decision by %s is that of upstream', async (_, who, request, reason) => {
    expect((await ask(authorizer, who, request)).reason).toBe(reason);
  });

  it('the rules of a user are those of the cluster and of the namespace, once each', async () => {
    const { roles, errors } = await authorizer.rulesFor(user('jane', 'viewers'), 'a');
    const shown = roles.flat().map(({ resources, nonResourceURLs }) => (resources ?? nonResourceURLs ?? []).join(' '));
    expect(shown).toEqual(['pods pods/log services namespaces', '/version /api /apis/*', 'secrets', 'pods/exec']);
    expect(errors).toEqual([]);
    expect((await authorizer.rulesFor(user('broken'), 'b')).errors).toHaveLength(2);
  });
});

it('a decision about thousands of rules, bindings and subjects takes milliseconds', async () => {
  const many = Array.from({ length: 20_000 }, (_, index): PolicyRule => rule('get', 'secrets', `s${index}`));
  const subjects = Array.from({ length: 20_000 }, (_, index) => `User u${index}`);
  const bindings = Array.from({ length: 10_000 }, (_, index) => roleBinding('a', `b${index}`, 'Role many', 'User u1'));
  const objects = rbacObjects(
    role('a', 'many', ...many),
    roleBinding('a', 'wide', 'Role many', ...subjects),
    ...bindings,
  );
  const rbac = createRbac(objects);
  const secret = (name: string) => ask(rbac, user('u1'), `get secrets a/${name}`);
  await secret('s1');
  const began = performance.now();
  for (let time = 0; time < 10; time++) {
    expect((await secret('s19999')).allowed).toBe(true);
    expect((await secret('absent')).allowed).toBe(false);
    expect((await ask(rbac, user('u1'), 'get pods a/x')).allowed).toBe(false);
  }
  expect(performance.now() - began).toBeLessThan(10_000);
});
