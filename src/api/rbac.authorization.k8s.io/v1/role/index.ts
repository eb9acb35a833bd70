/**
 * The Role: a set of rules about the resources of a namespace.
 * Source: pkg/registry/rbac/role and pkg/apis/rbac of v1.33.
 */
import { pathSegmentErrors } from '../../../../machinery/names.ts';
import { kind } from '../../../declaration.ts';
import type { Role } from '../../../generated/types.ts';
import { roleColumns, validateRules } from '../role-rules.ts';

export const roleKind = kind<Role>('rbac.authorization.k8s.io/v1', 'Role', {
  names: pathSegmentErrors,
  rules: [(role) => validateRules(role, true)],
  columns: roleColumns,
});
