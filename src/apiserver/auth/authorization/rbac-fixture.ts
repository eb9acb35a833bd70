import type {
  ClusterRole,
  ClusterRoleBinding,
  PolicyRule,
  RbacV1Subject,
  Role,
  RoleBinding,
} from '../../../api/generated/types.ts';
import type { RbacObjects } from './rbac.ts';
import { bindingKeys } from './subjects.ts';

const apiGroup = 'rbac.authorization.k8s.io';
const apiVersion = `${apiGroup}/v1`;

export const clusterRole = (name: string, ...rules: PolicyRule[]): ClusterRole => ({
  apiVersion,
  kind: 'ClusterRole',
  metadata: { name },
  rules,
});

export const role = (namespace: string, name: string, ...rules: PolicyRule[]): Role => ({
  apiVersion,
  kind: 'Role',
  metadata: { name, namespace },
  rules,
});

/** Returns a rule about resources of the core group. `verbs` and `resources` are separated by spaces. */
export const rule = (verbs: string, resources: string, ...resourceNames: string[]): PolicyRule => ({
  apiGroups: [''],
  resources: resources.split(' '),
  verbs: verbs.split(' '),
  ...(resourceNames.length === 0 ? {} : { resourceNames }),
});

/** Parses a text such as `User jane`, `Group team` or `ServiceAccount ns/name`. */
function subject(text: string): RbacV1Subject {
  const [kind = '', name = ''] = text.split(/ (.*)/s);
  if (kind !== 'ServiceAccount') return { apiGroup, kind, name };
  const [namespace, account] = name.includes('/') ? name.split('/') : ['', name];
  return { kind, name: account ?? '', ...(namespace ? { namespace } : {}) };
}

export const clusterRoleBinding = (name: string, roleName: string, ...subjects: string[]): ClusterRoleBinding => ({
  apiVersion,
  kind: 'ClusterRoleBinding',
  metadata: { name },
  roleRef: { apiGroup, kind: 'ClusterRole', name: roleName },
  subjects: subjects.map(subject),
});

/** `roleText`: such as `Role reader` or `ClusterRole view`. `subjects`: such as `User jane`. */
export function roleBinding(namespace: string, name: string, roleText: string, ...subjects: string[]): RoleBinding {
  const [kind = '', roleName = ''] = roleText.split(' ');
  return {
    apiVersion,
    kind: 'RoleBinding',
    metadata: { name, namespace },
    roleRef: { apiGroup, kind, name: roleName },
    subjects: subjects.map(subject),
  };
}

export function rbacObjects(...objects: (ClusterRole | Role | ClusterRoleBinding | RoleBinding)[]): RbacObjects {
  const named = new Map<string, ClusterRole | Role>();
  const bindings = new Map<string, (ClusterRoleBinding | RoleBinding)[]>();
  for (const object of objects) {
    const { namespace = '', name } = object.metadata;
    if (!('roleRef' in object)) named.set(`${namespace}/${name}`, object);
    else
      for (const key of bindingKeys(object)) {
        const known = bindings.get(key);
        if (known === undefined) bindings.set(key, [object]);
        else known.push(object);
      }
  }
  return {
    synced: Promise.resolve(),
    role: (namespace, name) => named.get(`${namespace}/${name}`) as Role | undefined,
    clusterRole: (name) => named.get(`/${name}`),
    clusterRoleBindings: (key) => bindings.get(key) ?? [],
    roleBindings: (key) => (bindings.get(key) ?? []) as RoleBinding[],
  };
}
