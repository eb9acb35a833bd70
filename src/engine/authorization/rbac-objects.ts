/** Follows the roles and bindings of RBAC with the shared informers of the engine. */
import type { ClusterRole, ClusterRoleBinding, Role, RoleBinding } from '../../api/generated/types.ts';
import { CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES } from '../../api/resources.ts';
import type { RbacObjects } from '../../apiserver/auth/authorization/rbac.ts';
import { bindingKeys } from '../../apiserver/auth/authorization/subjects.ts';
import type { Informer } from '../../client/informer.ts';
import type { SharedInformers } from '../../client/shared-informers.ts';
import type { KubeObject, ResourceRef } from '../../machinery/meta.ts';

export interface FollowedRbac extends RbacObjects {
  changes(): number;
}

/** Bindings are indexed by namespace and subject, so that a decision reads only the bindings of one user. */
export function followRbac({ informers, signal }: { informers: SharedInformers; signal: AbortSignal }): FollowedRbac {
  let changes = 0;
  const changed = (): void => {
    changes++;
  };
  const follow = <T extends KubeObject>(ref: ResourceRef): Informer<T> =>
    informers.follow<T>(ref, { signal }, { added: changed, updated: changed, deleted: changed });
  const roles = follow<Role>(ROLES);
  const clusterRoles = follow<ClusterRole>(CLUSTER_ROLES);
  const bindings = follow<RoleBinding>(ROLE_BINDINGS);
  const clusterBindings = follow<ClusterRoleBinding>(CLUSTER_ROLE_BINDINGS);
  const followed = [roles, clusterRoles, bindings, clusterBindings];
  return {
    changes: () => changes,
    synced: Promise.all(followed.map(({ synced }) => synced)).then(() => undefined),
    role: (namespace, name) => roles.get(namespace, name),
    clusterRole: (name) => clusterRoles.get(undefined, name),
    roleBindings: (key) => bindings.by(bindingKeys, key),
    clusterRoleBindings: (key) => clusterBindings.by(bindingKeys, key),
  };
}
