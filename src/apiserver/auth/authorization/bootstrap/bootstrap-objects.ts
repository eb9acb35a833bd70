import type {
  ClusterRole,
  ClusterRoleBinding,
  RbacV1Subject,
  Role,
  RoleBinding,
} from '../../../../api/generated/types.ts';
import { RBAC_GROUP } from '../../../../api/rbac.authorization.k8s.io/v1/role-rules.ts';
import { aggregatedRoles, aggregatedTo, clusterRoleSubjects, clusterRoleTexts } from './cluster-roles.ts';
import { controllerRoleTexts } from './controller-roles.ts';
import { roleSubjects, roleTexts } from './namespace-roles.ts';
import { ownAggregatedTexts, ownControllerRoleTexts, ownRoles } from './own-roles.ts';
import { ruleOf } from './rule-text.ts';

/** With the value "false", the API server does not correct the existing role or binding at its start. */
export const AUTO_UPDATE = 'rbac.authorization.kubernetes.io/autoupdate';

export interface BootstrapObjects {
  clusterRoles: ClusterRole[];
  clusterRoleBindings: ClusterRoleBinding[];
  roles: Role[];
  roleBindings: RoleBinding[];
}

const apiVersion = `${RBAC_GROUP}/v1`;

const metadataOf = (name: string, namespace?: string, labels?: Record<string, string>) => ({
  name,
  ...(namespace === undefined ? {} : { namespace }),
  labels: { 'kubernetes.io/bootstrapping': 'rbac-defaults', ...labels },
  annotations: { [AUTO_UPDATE]: 'true' },
});

const aggregationLabel = (role: string): string => `rbac.authorization.k8s.io/aggregate-to-${role}`;

function aggregationLabels(name: string): Record<string, string> {
  const targets = aggregatedRoles.filter((role) => aggregatedTo[role]?.includes(name));
  return Object.fromEntries(targets.map((role) => [aggregationLabel(role), 'true']));
}

/** Parses a text such as `Group system:masters` or `ServiceAccount kube-system/kube-dns`. */
function subjectOf(text: string): RbacV1Subject {
  const [kind = '', name = ''] = text.split(' ');
  if (kind !== 'ServiceAccount') return { apiGroup: RBAC_GROUP, kind, name };
  const [namespace = '', account = ''] = name.split('/');
  return { kind, name: account, namespace };
}

const clusterRole = (name: string, texts: readonly string[], labels = aggregationLabels(name)): ClusterRole => ({
  apiVersion,
  kind: 'ClusterRole',
  metadata: metadataOf(name, undefined, labels),
  rules: texts.map(ruleOf),
});

const ownAggregated = ([target, texts]: [string, readonly string[]]): ClusterRole =>
  clusterRole(`system:lifepod:aggregate-to-${target}`, texts, { [aggregationLabel(target)]: 'true' });

const clusterRoleBinding = (role: string, subjects: readonly string[]): ClusterRoleBinding => ({
  apiVersion,
  kind: 'ClusterRoleBinding',
  metadata: metadataOf(role),
  roleRef: { apiGroup: RBAC_GROUP, kind: 'ClusterRole', name: role },
  ...(subjects.length === 0 ? {} : { subjects: subjects.map(subjectOf) }),
});

const clusterAdmin: ClusterRole = {
  ...clusterRole('cluster-admin', ['* * in *']),
  rules: [ruleOf('* * in *'), { nonResourceURLs: ['*'], verbs: ['*'] }],
};

const aggregated = (name: string): ClusterRole => {
  const { rules: _, ...role } = clusterRole(name, []);
  const selector = { matchLabels: { [aggregationLabel(name)]: 'true' } };
  return { ...role, aggregationRule: { clusterRoleSelectors: [selector] } };
};

const controllerRole = (controller: string): string => `system:controller:${controller}`;

const perNamespace = <T, R>(
  all: Readonly<Record<string, Readonly<Record<string, T>>>>,
  make: (namespace: string, name: string, value: T) => R,
): R[] =>
  Object.entries(all).flatMap(([namespace, named]) =>
    Object.entries(named).map(([name, value]) => make(namespace, name, value)),
  );

export function bootstrapObjects(): BootstrapObjects {
  const controllers = Object.entries({ ...controllerRoleTexts, ...ownControllerRoleTexts });
  const own = Object.entries(ownRoles);
  return {
    clusterRoles: [
      clusterAdmin,
      ...aggregatedRoles.map(aggregated),
      ...Object.entries(clusterRoleTexts).map(([name, texts]) => clusterRole(name, texts)),
      ...controllers.map(([name, texts]) => clusterRole(controllerRole(name), texts)),
      ...own.map(([name, { rules }]) => clusterRole(name, rules)),
      ...Object.entries(ownAggregatedTexts).map(ownAggregated),
    ],
    clusterRoleBindings: [
      ...Object.entries(clusterRoleSubjects).map(([role, subjects]) => clusterRoleBinding(role, subjects)),
      ...controllers.map(([name]) => clusterRoleBinding(controllerRole(name), [`ServiceAccount kube-system/${name}`])),
      ...own.map(([name, { accounts }]) =>
        clusterRoleBinding(
          name,
          accounts.map((account) => `ServiceAccount kube-system/${account}`),
        ),
      ),
    ],
    roles: perNamespace(roleTexts, (namespace, name, texts) => ({
      apiVersion,
      kind: 'Role',
      metadata: metadataOf(name, namespace),
      rules: texts.map(ruleOf),
    })),
    roleBindings: perNamespace(roleSubjects, (namespace, name, { role, subjects }) => ({
      apiVersion,
      kind: 'RoleBinding',
      metadata: metadataOf(name, namespace),
      roleRef: { apiGroup: RBAC_GROUP, kind: 'Role', name: role },
      subjects: subjects.map(subjectOf),
    })),
  };
}
