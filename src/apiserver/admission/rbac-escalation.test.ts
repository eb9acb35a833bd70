import { describe, expect, test } from 'vitest';
import type { ClusterRole, ClusterRoleBinding, Role, RoleBinding } from '../../api/generated/types.ts';
import { CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES } from '../../api/resources.ts';
import type { KubeObject, ResourceRef } from '../../machinery/meta.ts';
import { apiFor } from '../../ports/api-for.ts';
import { privilegedOr } from '../auth/authorization/authorizer.ts';
import { createRbac } from '../auth/authorization/rbac.ts';
import {
  clusterRole,
  clusterRoleBinding,
  rbacObjects,
  role,
  roleBinding,
  rule,
} from '../auth/authorization/rbac-fixture.ts';
import { asClient, failure, startRegistry } from '../registry/testing.ts';

const rbacRule = (verbs: string, resource: string, ...resourceNames: string[]) => ({
  ...rule(verbs, resource, ...resourceNames),
  apiGroups: ['rbac.authorization.k8s.io'],
});
const everything = [
  { apiGroups: ['*'], resources: ['*'], verbs: ['*'] },
  { nonResourceURLs: ['*'], verbs: ['*'] },
];
const granted = [
  clusterRole('everything', ...everything),
  clusterRole('pods', rule('get list', 'pods')),
  clusterRole('escalate', rbacRule('escalate', 'roles clusterroles')),
  clusterRole('bind', rbacRule('bind', 'clusterroles', 'everything')),
  clusterRoleBinding('root', 'everything', 'User root'),
  clusterRoleBinding('pods', 'pods', 'User reader'),
  clusterRoleBinding('escalator', 'escalate', 'User escalator'),
  clusterRoleBinding('binder', 'bind', 'User binder'),
  roleBinding('default', 'local', 'ClusterRole everything', 'User local'),
];

async function start() {
  const authorizer = privilegedOr(createRbac(rbacObjects(...granted)));
  const { registry, backend } = await startRegistry({ authorizer });
  for (const each of granted)
    if (each.kind === 'ClusterRole') await registry.create(CLUSTER_ROLES, undefined, each as KubeObject);
  await registry.create(ROLES, 'default', role('default', 'secrets', rule('get', 'secrets')));
  const userOf = (name: string) => ({ name, groups: ['g', 'system:authenticated'] });
  return {
    registry,
    as: (name: string) => asClient(backend, userOf(name)),
    asComponent: (name: string) => apiFor(backend, userOf(name)),
  };
}

const refOf = ({ kind }: KubeObject): ResourceRef =>
  ({ Role: ROLES, ClusterRole: CLUSTER_ROLES, RoleBinding: ROLE_BINDINGS, ClusterRoleBinding: CLUSTER_ROLE_BINDINGS })[
    kind as 'Role'
  ];

const notHeld = (user: string, ...rights: string[]): string =>
  `user "${user}" (groups=["g" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n${rights.join('\n')}`;

const GET_SECRETS = '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}';
const secrets = rule('get', 'secrets');
const aggregated: ClusterRole = {
  ...clusterRole('sum'),
  aggregationRule: { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] },
};

describe('grants of rights', () => {
  test.each<[string, string, Role | ClusterRole | RoleBinding | ClusterRoleBinding, string]>([
    ['reader', 'a role with held rights', role('default', 'r', rule('get', 'pods')), ''],
    [
      'reader',
      'a role with other rights',
      role('default', 'r', rule('get delete', 'pods'), secrets),
      `roles.rbac.authorization.k8s.io "r" is forbidden: ${notHeld('reader', '{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}', GET_SECRETS)}`,
    ],
    ['escalator', 'a role with other rights', role('default', 'r', secrets), ''],
    ['local', 'a role in the namespace', role('default', 'r', secrets), ''],
    [
      'local',
      'a ClusterRole',
      clusterRole('r', secrets),
      `clusterroles.rbac.authorization.k8s.io "r" is forbidden: ${notHeld('local', GET_SECRETS)}`,
    ],
    [
      'reader',
      'an aggregated role',
      aggregated,
      'clusterroles.rbac.authorization.k8s.io "sum" is forbidden: must have cluster-admin privileges to use the aggregationRule',
    ],
    ['root', 'an aggregated role', aggregated, ''],
    ['reader', 'a binding to held rights', roleBinding('default', 'b', 'ClusterRole pods', 'User u'), ''],
    [
      'reader',
      'a binding to other rights',
      roleBinding('default', 'b', 'Role secrets', 'User u'),
      `rolebindings.rbac.authorization.k8s.io "b" is forbidden: ${notHeld('reader', GET_SECRETS)}`,
    ],
    ['binder', 'a binding to a role that may be bound', clusterRoleBinding('b', 'everything', 'User u'), ''],
    [
      'binder',
      'a binding to another role',
      clusterRoleBinding('b', 'pods', 'User u'),
      `clusterrolebindings.rbac.authorization.k8s.io "b" is forbidden: ${notHeld('binder', '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}')}`,
    ],
    [
      'reader',
      'a binding to an absent role',
      roleBinding('default', 'b', 'Role absent', 'User u'),
      'role.rbac.authorization.k8s.io "absent" not found',
    ],
    [
      'local',
      'a binding to everything in the namespace',
      roleBinding('default', 'b', 'ClusterRole everything', 'User u'),
      '',
    ],
  ])('%s creates %s', async (user, _, object, message) => {
    const { as } = await start();
    const made = as(user).create(refOf(object as KubeObject), object.metadata.namespace, object as KubeObject);
    if (message === '') await made;
    else expect((await failure(made)).message).toBe(message);
  });

  test('a role with other rights can get a finalizer, but no labels and no other change', async () => {
    const { registry, as } = await start();
    const found = (await registry.get(ROLES, 'default', 'secrets')) as Role;
    const reader = as('reader');
    const { metadata } = found;
    const changed = (change: object) => reader.update(ROLES, { ...found, metadata: { ...metadata, ...change } });
    expect((await failure(changed({ labels: { a: 'b' } }))).code).toBe(403);
    await changed({ finalizers: ['a.b/c'] });
    const patch = reader.patch(ROLES, 'default', 'secrets', 'application/merge-patch+json', {
      rules: [rule('*', '*')],
    });
    expect((await failure(patch)).code).toBe(403);
    const applied = reader.patch(
      ROLES,
      'default',
      'new',
      'application/apply-patch+yaml',
      { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata: { name: 'new' }, rules: [secrets] },
      { fieldManager: 'me' },
    );
    expect((await failure(applied)).code).toBe(403);
  });
});

test('a component grants no rights that its user does not have, unless it may escalate', async () => {
  const { asComponent } = await start();
  const create = (user: string) =>
    asComponent(user).create(ROLES, 'default', role('default', 'r', secrets) as KubeObject);
  expect((await failure(create('reader'))).message).toContain(notHeld('reader', GET_SECRETS));
  await create('escalator');
});
