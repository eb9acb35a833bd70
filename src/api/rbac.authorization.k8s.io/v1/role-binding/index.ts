/**
 * The RoleBinding: grants the rules of a Role, or of a ClusterRole, in its namespace to users, groups and ServiceAccounts.
 * Source: pkg/registry/rbac/rolebinding and pkg/apis/rbac of v1.33.
 */
import { pathSegmentErrors } from '../../../../machinery/names.ts';
import { kind } from '../../../declaration.ts';
import type { RoleBinding } from '../../../generated/types.ts';
import { bindingColumns, defaultBinding, validateBinding } from '../binding-rules.ts';

export const roleBindingKind = kind<RoleBinding>('rbac.authorization.k8s.io/v1', 'RoleBinding', {
  names: pathSegmentErrors,
  defaults: defaultBinding,
  rules: [(binding, old) => validateBinding(binding, old, { kinds: ['Role', 'ClusterRole'], namespaced: true })],
  columns: bindingColumns,
});
