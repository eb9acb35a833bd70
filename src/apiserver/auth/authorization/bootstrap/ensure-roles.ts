import { CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES } from '../../../../api/resources.ts';
import type { KubeObject, ResourceRef } from '../../../../machinery/meta.ts';
import { isApiError } from '../../../../machinery/status.ts';
import type { ResourceApi } from '../../../../ports/backend.ts';
import { absent, ensure } from '../../../registry/bootstrap.ts';
import { bootstrapObjects } from './bootstrap-objects.ts';
import { type Reconciliation, reconcileBinding, reconcileRole } from './reconcile.ts';

/**
 * Creates or corrects the roles and bindings that every cluster has. The writes run concurrently, because the store flushes concurrent
 * writes together.
 */
export async function ensureRoles(api: ResourceApi): Promise<void> {
  const { clusterRoles, roles, clusterRoleBindings, roleBindings } = bootstrapObjects();
  await Promise.all([
    ...clusterRoles.map((role) => ensureOne(api, CLUSTER_ROLES, role, reconcileRole)),
    ...roles.map((role) => ensureOne(api, ROLES, role, reconcileRole)),
    ...clusterRoleBindings.map((binding) => ensureOne(api, CLUSTER_ROLE_BINDINGS, binding, reconcileBinding)),
    ...roleBindings.map((binding) => ensureOne(api, ROLE_BINDINGS, binding, reconcileBinding)),
  ]);
}

async function ensureOne<T extends KubeObject>(
  api: ResourceApi,
  ref: ResourceRef,
  expected: T,
  reconcile: (existing: T | undefined, expected: T) => Reconciliation<T>,
): Promise<void> {
  const { namespace, name } = expected.metadata;
  for (;;) {
    const existing = (await api.get(ref, namespace, name).catch(absent)) as T | undefined;
    const change = reconcile(existing, expected);
    if (change === undefined) return;
    try {
      if (change.action === 'update') return void (await api.update(ref, change.object));
      if (change.action === 'recreate') await api.delete(ref, namespace, name);
      return await ensure(() => api.create(ref, namespace, change.object));
    } catch (error) {
      if (!isApiError(error, 'Conflict')) throw error;
    }
  }
}
