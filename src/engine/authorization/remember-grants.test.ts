import { expect, test } from 'vitest';
import { createRbac } from '../../apiserver/auth/authorization/rbac.ts';
import {
  clusterRole,
  clusterRoleBinding,
  rbacObjects,
  role,
  roleBinding,
  rule,
} from '../../apiserver/auth/authorization/rbac-fixture.ts';
import type { Authorizer } from '../../ports/authorizer.ts';
import { SCHEDULER as user } from '../users.ts';
import { rememberGrants } from './remember-grants.ts';

const granted = rbacObjects(
  clusterRole('pods', rule('get', 'pods')),
  role('a', 'one', rule('get', 'secrets', 'one')),
  clusterRoleBinding('pods', 'pods', `User ${user.name}`),
  roleBinding('a', 'one', 'Role one', `User ${user.name}`),
);

function setUp() {
  let objects = granted;
  let changes = 0;
  let asked = 0;
  const counting: Authorizer = {
    authorize: (attributes) => {
      asked++;
      return createRbac(objects).authorize(attributes);
    },
    rulesFor: (...of) => createRbac(objects).rulesFor(...of),
  };
  const authorizer = rememberGrants(counting, () => changes);
  const get = async (resource: string, namespace: string, name: string): Promise<boolean> =>
    (await authorizer.authorize({ user, verb: 'get', group: '', resource, namespace, name })).allowed;
  const change = (): void => {
    objects = rbacObjects();
    changes++;
  };
  return { authorizer, get, change, asked: () => asked };
}

test('a right to all objects is decided once, until a role or binding changes', async () => {
  const { get, change, asked } = setUp();
  expect([await get('pods', 'a', 'x'), await get('pods', 'b', 'y'), await get('pods', '', '')]).toEqual([
    true,
    true,
    true,
  ]);
  expect(asked()).toBe(1);
  change();
  expect(await get('pods', 'a', 'x')).toBe(false);
});

test('a right to single objects, and a missing right, are decided each time', async () => {
  const { get } = setUp();
  expect(await get('secrets', 'a', 'one')).toBe(true);
  expect(await get('secrets', 'a', 'two')).toBe(false);
  expect(await get('secrets', 'b', 'one')).toBe(false);
  expect(await get('secrets', 'a', 'one')).toBe(true);
});

test('a decision during which a role changes is not remembered', async () => {
  const { get, change } = setUp();
  const decision = get('pods', 'a', 'x');
  change();
  await decision;
  expect(await get('pods', 'a', 'x')).toBe(false);
});

test('requests for paths, and lists of rules, are answered by the authorizer each time', async () => {
  const { authorizer } = setUp();
  expect((await authorizer.authorize({ user, verb: 'get', path: '/x' })).allowed).toBe(false);
  expect((await authorizer.rulesFor(user, 'a')).roles).toHaveLength(2);
});
