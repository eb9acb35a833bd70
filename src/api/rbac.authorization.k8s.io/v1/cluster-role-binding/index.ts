/**
 * The ClusterRoleBinding: grants the rules of a ClusterRole in the whole cluster to users, groups and ServiceAccounts.
 * Source: pkg/registry/rbac/clusterrolebinding and pkg/apis/rbac of v1.33.
 */
import { pathSegmentErrors } from '../../../../machinery/names.ts';
import { kind } from '../../../declaration.ts';
import type { ClusterRoleBinding } from '../../../generated/types.ts';
import { bindingColumns, defaultBinding, validateBinding } from '../binding-rules.ts';

export const clusterRoleBindingKind = kind<ClusterRoleBinding>('rbac.authorization.k8s.io/v1', 'ClusterRoleBinding', {
  scope: 'Cluster',
  names: pathSegmentErrors,
  defaults: defaultBinding,
  rules: [(binding, old) => validateBinding(binding, old, { kinds: ['ClusterRole'], namespaced: false })],
  columns: bindingColumns,
});
