/**
 * Computes the keys of subjects in the index of bindings.
 * Source: appliesToUser of pkg/registry/rbac/validation/rule.go of v1.33 (behavior).
 */
import type { ClusterRoleBinding, RbacV1Subject, RoleBinding } from '../../../api/generated/types.ts';
import type { UserInfo } from '../../../ports/request.ts';

const SERVICE_ACCOUNT_USER = 'system:serviceaccount:';

/** Returns undefined if no user can match the subject. `bindingNamespace` is empty for a ClusterRoleBinding. */
function subjectKey({ kind, name, namespace }: RbacV1Subject, bindingNamespace: string): string | undefined {
  if (kind === 'User') return `User ${name}`;
  if (kind === 'Group') return `Group ${name}`;
  const ofAccount = namespace || bindingNamespace;
  if (kind !== 'ServiceAccount' || ofAccount === '') return undefined;
  return `ServiceAccount ${SERVICE_ACCOUNT_USER}${ofAccount}:${name}`;
}

export function bindingKeys({ metadata, subjects = [] }: RoleBinding | ClusterRoleBinding): string[] {
  const { namespace = '' } = metadata;
  const keys = new Set<string>();
  for (const subject of subjects) {
    const key = subjectKey(subject, namespace);
    if (key !== undefined) keys.add(inNamespace(namespace, key));
  }
  return [...keys];
}

/** The namespace is empty for ClusterRoleBindings. */
export const inNamespace = (namespace: string, key: string): string => `${namespace}/${key}`;

export function userKeys({ name, groups }: UserInfo): string[] {
  const keys = [`User ${name}`];
  if (name.startsWith(SERVICE_ACCOUNT_USER)) keys.push(`ServiceAccount ${name}`);
  for (const group of new Set(groups)) keys.push(`Group ${group}`);
  return keys;
}

/** Describes a subject by its key, such as `User "jane"`. As in upstream, the name of a ServiceAccount precedes its namespace. */
export function describeSubject(key: string): string {
  const space = key.indexOf(' ');
  const [kind, name] = [key.slice(0, space), key.slice(space + 1)];
  if (kind !== 'ServiceAccount') return `${kind} ${JSON.stringify(name)}`;
  const [namespace = '', account = ''] = name.slice(SERVICE_ACCOUNT_USER.length).split(':');
  return `${kind} ${JSON.stringify(`${account}/${namespace}`)}`;
}
