import { createHash } from 'node:crypto';
import { describe, expect, it, test } from 'vitest';
import type { ClusterRole, ClusterRoleBinding } from '../../../../api/generated/types.ts';
import { clusterRoleKind } from '../../../../api/rbac.authorization.k8s.io/v1/cluster-role/index.ts';
import { clusterRoleBindingKind } from '../../../../api/rbac.authorization.k8s.io/v1/cluster-role-binding/index.ts';
import { roleKind } from '../../../../api/rbac.authorization.k8s.io/v1/role/index.ts';
import { roleBindingKind } from '../../../../api/rbac.authorization.k8s.io/v1/role-binding/index.ts';
import { CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES } from '../../../../api/resources.ts';
import { startRegistry } from '../../../registry/testing.ts';
import { bootstrapObjects } from './bootstrap-objects.ts';
import { aggregatedTo, clusterRoleSubjects, clusterRoleTexts } from './cluster-roles.ts';
import { controllerRoleTexts } from './controller-roles.ts';
import { ensureRoles } from './ensure-roles.ts';
import { roleSubjects, roleTexts } from './namespace-roles.ts';
import { reconcileBinding, reconcileRole } from './reconcile.ts';
import { ruleOf } from './rule-text.ts';

describe('the text of rules', () => {
  test.each<[string, object]>([
    ['get,list pods', { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list'] }],
    [
      'update,read */scale in *',
      { apiGroups: ['*'], resources: ['*/scale'], verbs: ['get', 'list', 'update', 'watch'] },
    ],
    [
      'get leases in core,coordination.k8s.io named b,a',
      { apiGroups: ['', 'coordination.k8s.io'], resourceNames: ['a', 'b'], resources: ['leases'], verbs: ['get'] },
    ],
    ['get /healthz,/api/*', { nonResourceURLs: ['/api/*', '/healthz'], verbs: ['get'] }],
  ])('%s is a rule', (text, rule) => {
    expect(ruleOf(text)).toEqual(rule);
  });
});

it('the bootstrap roles and bindings are valid, and each binding refers to one of the roles', () => {
  const { clusterRoles, clusterRoleBindings, roles, roleBindings } = bootstrapObjects();
  expect(clusterRoles.flatMap((role) => clusterRoleKind.validateCreate(role))).toEqual([]);
  expect(roles.flatMap((role) => roleKind.validateCreate(role))).toEqual([]);
  expect(clusterRoleBindings.flatMap((binding) => clusterRoleBindingKind.validateCreate(binding))).toEqual([]);
  expect(roleBindings.flatMap((binding) => roleBindingKind.validateCreate(binding))).toEqual([]);
  const names = new Set(clusterRoles.map(({ metadata }) => metadata.name));
  expect(clusterRoleBindings.filter(({ roleRef }) => !names.has(roleRef.name))).toEqual([]);
});

it('the roles and subjects of upstream change only on purpose', () => {
  const upstream = [aggregatedTo, clusterRoleTexts, clusterRoleSubjects, controllerRoleTexts, roleTexts, roleSubjects];
  expect(upstream.map((entries) => Object.keys(entries).length)).toEqual([3, 27, 12, 35, 2, 2]);
  // After a deliberate change that has been compared with v1.33, the new hash belongs here.
  const hash = createHash('sha256').update(JSON.stringify(upstream)).digest('hex');
  expect(hash.slice(0, 16)).toBe('5b9f169698eed4c7');
});

test.each<[string, string, string[]]>([
  ['a user who may edit a namespace may give up defer containers', 'edit', ['update pods/defer']],
  [
    'a user who may view a namespace may read the records and the metrics of Pods',
    'view',
    ['read podrecords in lifepod.io', 'read nodes,pods in metrics.k8s.io'],
  ],
])('%s in it, by a role that has no binding', (_, target, texts) => {
  const { clusterRoles, clusterRoleBindings } = bootstrapObjects();
  const name = `system:lifepod:aggregate-to-${target}`;
  const role = clusterRoles.find(({ metadata }) => metadata.name === name);
  expect(role?.metadata.labels).toMatchObject({ [`rbac.authorization.k8s.io/aggregate-to-${target}`]: 'true' });
  expect(role?.rules).toEqual(texts.map(ruleOf));
  expect(clusterRoleBindings.filter(({ roleRef }) => roleRef.name === name)).toEqual([]);
});

const clusterRole = (name: string): ClusterRole =>
  bootstrapObjects().clusterRoles.find(({ metadata }) => metadata.name === name) as ClusterRole;
const binding = (name: string): ClusterRoleBinding =>
  bootstrapObjects().clusterRoleBindings.find(({ metadata }) => metadata.name === name) as ClusterRoleBinding;

const withAnnotation = <T extends ClusterRole | ClusterRoleBinding>(object: T, value: string): T => ({
  ...object,
  metadata: { ...object.metadata, annotations: { 'rbac.authorization.kubernetes.io/autoupdate': value } },
});

describe('reconciliation of roles and bindings', () => {
  it('an absent role is created, and an equal one remains', () => {
    const expected = clusterRole('system:discovery');
    expect(reconcileRole(undefined, expected)).toEqual({ action: 'create', object: expected });
    expect(reconcileRole(expected, expected)).toBeUndefined();
  });
  it('missing rules, labels and annotations are added, and others remain', () => {
    const expected = clusterRole('system:kube-dns');
    const rules = [{ apiGroups: [''], resources: ['endpoints', 'pods'], verbs: ['list', 'watch'] }];
    const changed = reconcileRole(
      { ...expected, metadata: { name: 'system:kube-dns', labels: { a: 'b' } }, rules },
      expected,
    );
    expect(changed?.action).toBe('update');
    expect(changed?.object.metadata).toMatchObject({
      labels: { a: 'b', 'kubernetes.io/bootstrapping': 'rbac-defaults' },
      annotations: { 'rbac.authorization.kubernetes.io/autoupdate': 'true' },
    });
    const services = (verb: string) => ({ apiGroups: [''], resources: ['services'], verbs: [verb] });
    expect(changed?.object.rules).toEqual([...rules, services('list'), services('watch')]);
  });
  it('roles and bindings with the annotation autoupdate=false remain as they are', () => {
    expect(
      reconcileRole(
        withAnnotation({ ...clusterRole('view'), aggregationRule: undefined }, 'false'),
        clusterRole('view'),
      ),
    ).toBeUndefined();
    const other = { ...binding('cluster-admin'), subjects: [] };
    expect(reconcileBinding(withAnnotation(other, 'false'), binding('cluster-admin'))).toBeUndefined();
  });
  it('the rules of an aggregated role are left to the controller, and a missing selector is added', () => {
    const rules = [ruleOf('get pods')];
    expect(reconcileRole({ ...clusterRole('view'), rules }, clusterRole('view'))).toBeUndefined();
    const own = { matchLabels: { a: 'b' } };
    const changed = reconcileRole(
      { ...clusterRole('view'), aggregationRule: { clusterRoleSelectors: [own] } },
      clusterRole('view'),
    );
    expect(changed?.object.aggregationRule?.clusterRoleSelectors).toEqual([
      own,
      { matchLabels: { 'rbac.authorization.k8s.io/aggregate-to-view': 'true' } },
    ]);
  });
  it('a missing subject is added, and a binding to another role is replaced', () => {
    const expected = binding('cluster-admin');
    const mine = { apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'me' };
    expect(reconcileBinding({ ...expected, subjects: [mine] }, expected)?.object.subjects).toEqual([
      mine,
      ...(expected.subjects ?? []),
    ]);
    const roleRef = { ...expected.roleRef, name: 'view' };
    expect(reconcileBinding({ ...expected, roleRef }, expected)).toEqual({ action: 'recreate', object: expected });
  });
});

it('the roles are created once, and what a user deletes or takes away is restored at the next start', async () => {
  const { registry } = await startRegistry();
  await ensureRoles(registry);
  const before = registry.revision();
  const names = async (ref: typeof ROLES) => (await registry.list(ref, {})).items.map(({ metadata }) => metadata.name);
  expect(await names(CLUSTER_ROLES)).toContain('system:controller:namespace-controller');
  expect(await names(ROLES)).toContain('extension-apiserver-authentication-reader');
  expect(await names(ROLE_BINDINGS)).toContain('system:controller:bootstrap-signer');
  await ensureRoles(registry);
  expect(registry.revision()).toBe(before);
  await registry.delete(CLUSTER_ROLE_BINDINGS, undefined, 'system:discovery');
  // After this deletion, the roles look as if an earlier version of lifepod, which did not have the deleted role, had created them.
  await registry.delete(CLUSTER_ROLES, undefined, 'system:lifepod:aggregate-to-view');
  const admin = (await registry.get(CLUSTER_ROLES, undefined, 'cluster-admin')) as ClusterRole;
  await registry.update(CLUSTER_ROLES, { ...admin, rules: [] } as ClusterRole);
  await ensureRoles(registry);
  expect(await names(CLUSTER_ROLE_BINDINGS)).toContain('system:discovery');
  expect(await names(CLUSTER_ROLES)).toContain('system:lifepod:aggregate-to-view');
  expect(((await registry.get(CLUSTER_ROLES, undefined, 'cluster-admin')) as ClusterRole).rules).toHaveLength(2);
});
