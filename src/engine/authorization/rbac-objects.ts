/** Follows the roles and bindings of RBAC by the informers that the components of the engine share. */
import type { ClusterRole, ClusterRoleBinding, Role, RoleBinding } from '../../api/generated/types.ts';
import { CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES } from '../../api/resources.ts';
import type { RbacObjects } from '../../apiserver/auth/authorization/rbac.ts';
import { bindingKeys } from '../../apiserver/auth/authorization/subjects.ts';
import type { SharedInformers } from '../../client/shared-informers.ts';

/** Bindings are indexed by namespace and subject, so that a decision reads only those of one user. */
export function followRbac({ informers, signal }: { informers: SharedInformers; signal: AbortSignal }): RbacObjects {
  const roles = informers.follow<Role>(ROLES, { signal });
  const clusterRoles = informers.follow<ClusterRole>(CLUSTER_ROLES, { signal });
  const bindings = informers.follow<RoleBinding>(ROLE_BINDINGS, { signal });
  const clusterBindings = informers.follow<ClusterRoleBinding>(CLUSTER_ROLE_BINDINGS, { signal });
  const followed = [roles, clusterRoles, bindings, clusterBindings];
  return {
    synced: Promise.all(followed.map(({ synced }) => synced)).then(() => undefined),
    role: (namespace, name) => roles.get(namespace, name),
    clusterRole: (name) => clusterRoles.get(undefined, name),
    roleBindings: (key) => bindings.by(bindingKeys, key),
    clusterRoleBindings: (key) => clusterBindings.by(bindingKeys, key),
  };
}
