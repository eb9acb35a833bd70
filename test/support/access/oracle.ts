/**
 * Decides which requests the engine must allow, by a plain reading of upstream's documentation, without code of the engine.
 * Source: k8s.io/apiserver/pkg/endpoints/request/requestinfo.go, filters/impersonation.go and pkg/registry/rbac/validation of v1.33.
 */
import type {
  ClusterRole,
  ClusterRoleBinding,
  PolicyRule,
  Role,
  RoleBinding,
} from '../../../src/api/generated/types.ts';

export interface User {
  name: string;
  groups: readonly string[];
}

export type Right =
  | { verb: string; path: string }
  | {
      verb: string;
      group: string;
      resource: string;
      subresource: string;
      namespace: string;
      name: string;
    };

export interface Access {
  roles: readonly Role[];
  clusterRoles: readonly ClusterRole[];
  roleBindings: readonly RoleBinding[];
  clusterRoleBindings: readonly ClusterRoleBinding[];
}

const VERBS: Readonly<Record<string, string>> = {
  POST: 'create',
  GET: 'get',
  HEAD: 'get',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};

/** `path` has no query. Returns undefined if it is not correctly percent-encoded. */
export function segmentsOf(path: string): string[] | undefined {
  const segments = path.slice(1).split('/');
  if (segments.at(-1) === '') segments.pop();
  try {
    return segments.map(decodeURIComponent);
  } catch {
    return undefined;
  }
}

/** Returns undefined if the path is not correctly percent-encoded. `target`: the path and the query. */
export function rightFor(method: string, target: string): Right | undefined {
  const [path = '', ...rest] = target.split('?');
  const query = new URLSearchParams(rest.join('?'));
  const segments = segmentsOf(path);
  if (segments === undefined) return undefined;
  const [prefix, ...more] = segments;
  const parts = prefix === 'apis' ? more.slice(2) : more.slice(1);
  if ((prefix !== 'api' && prefix !== 'apis') || parts.length === 0)
    return { verb: method.toLowerCase(), path: `/${segments.join('/')}` };
  const right = {
    verb: VERBS[method] ?? '',
    group: prefix === 'apis' ? (more[0] ?? '') : '',
    resource: '',
    subresource: '',
    namespace: '',
    name: '',
  };
  let left = parts;
  if ((left[0] === 'watch' || left[0] === 'proxy') && left.length > 1) {
    right.verb = left[0];
    left = left.slice(1);
  }
  if (left[0] === 'namespaces' && left[1] !== undefined) {
    right.namespace = left[1];
    if (left[2] !== undefined && left[2] !== 'status' && left[2] !== 'finalize') left = left.slice(2);
  }
  right.resource = left[0] ?? '';
  right.name = left[1] ?? '';
  right.subresource = right.verb === 'proxy' ? '' : (left[2] ?? '');
  const watch = query.get('watch');
  if (right.name === '' && right.verb === 'get')
    right.verb = watch === null || watch.toLowerCase() === 'false' || watch === '0' ? 'list' : 'watch';
  // The name in a field selector counts as the name of the object. Unlike upstream, this also applies to the deprecated paths of watches.
  if (right.name === '' && (right.verb === 'list' || right.verb === 'watch'))
    right.name = /^metadata\.name=([a-z0-9.-]+)$/.exec(query.get('fieldSelector') ?? '')?.[1] ?? '';
  if (right.name === '' && right.verb === 'delete') right.verb = 'deletecollection';
  return right;
}

export function isAllowed(access: Access, user: User, right: Right): boolean {
  if (user.groups.includes('system:masters')) return true;
  const namespace = 'path' in right ? '' : right.namespace;
  const granted: (readonly PolicyRule[] | undefined)[] = [];
  for (const binding of access.clusterRoleBindings)
    if (isSubject(binding, user, '')) granted.push(clusterRules(access, binding.roleRef.name));
  for (const binding of access.roleBindings) {
    if (binding.metadata.namespace !== namespace || namespace === '' || !isSubject(binding, user, namespace)) continue;
    const { kind, name } = binding.roleRef;
    const role = access.roles.find(({ metadata }) => metadata.namespace === namespace && metadata.name === name);
    granted.push(kind === 'Role' ? role?.rules : clusterRules(access, name));
  }
  return granted.some((rules = []) => rules.some((rule) => grants(rule, right)));
}

const clusterRules = ({ clusterRoles }: Access, name: string): readonly PolicyRule[] | undefined =>
  clusterRoles.find(({ metadata }) => metadata.name === name)?.rules;

function isSubject({ subjects = [] }: RoleBinding | ClusterRoleBinding, user: User, namespace: string): boolean {
  return subjects.some((subject) => {
    if (subject.kind === 'User') return subject.name === user.name;
    if (subject.kind === 'Group') return user.groups.includes(subject.name);
    const own = subject.namespace ?? namespace;
    return subject.kind === 'ServiceAccount' && user.name === `system:serviceaccount:${own}:${subject.name}`;
  });
}

function grants(rule: PolicyRule, right: Right): boolean {
  const { verbs = [], apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } = rule;
  if (!verbs.includes('*') && !verbs.includes(right.verb)) return false;
  if ('path' in right)
    return nonResourceURLs.some((url) =>
      url.endsWith('*') ? right.path.startsWith(url.slice(0, -1)) : url === right.path,
    );
  const { group, resource, subresource, name } = right;
  const named = subresource === '' ? [resource] : [`${resource}/${subresource}`, `*/${subresource}`];
  return (
    (apiGroups.includes('*') || apiGroups.includes(group)) &&
    ['*', ...named].some((each) => resources.includes(each)) &&
    (resourceNames.length === 0 || resourceNames.includes(name))
  );
}

export interface Impersonation {
  user?: string;
  groups: readonly string[];
  uid?: string;
  extra: readonly (readonly [key: string, value: string])[];
}

const ACCOUNT = /^system:serviceaccount:([^:]+):([^:]+)$/;

/**
 * Returns the user that the request acts as; 'forbidden' if the sender may not impersonate the user; 'bad' if the request names groups, a
 * UID or extra fields, but no user.
 */
export function impersonated(access: Access, sender: User, wanted: Impersonation): User | 'forbidden' | 'bad' {
  const { user = '', groups, uid = '', extra } = wanted;
  if (user === '') return groups.length === 0 && uid === '' && extra.length === 0 ? sender : 'bad';
  const may = (right: Partial<Extract<Right, { group: string }>>): boolean =>
    isAllowed(access, sender, {
      verb: 'impersonate',
      group: '',
      resource: '',
      subresource: '',
      namespace: '',
      name: '',
      ...right,
    });
  const [, namespace = '', name = ''] = ACCOUNT.exec(user) ?? [];
  const mayAll =
    (namespace === ''
      ? may({ resource: 'users', name: user })
      : may({ resource: 'serviceaccounts', namespace, name })) &&
    groups.every((group) => may({ resource: 'groups', name: group })) &&
    extra.every(([key, value]) =>
      may({ group: 'authentication.k8s.io', resource: 'userextras', subresource: key, name: value }),
    ) &&
    (uid === '' || may({ group: 'authentication.k8s.io', resource: 'uids', name: uid }));
  if (!mayAll) return 'forbidden';
  const own = namespace === '' ? [] : ['system:serviceaccounts', `system:serviceaccounts:${namespace}`];
  const all = groups.length > 0 ? groups : own;
  if (user === 'system:anonymous') return { name: user, groups: [...all, 'system:unauthenticated'] };
  return { name: user, groups: all.includes('system:unauthenticated') ? all : [...all, 'system:authenticated'] };
}
