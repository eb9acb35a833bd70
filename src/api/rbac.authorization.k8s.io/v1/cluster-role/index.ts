/**
 * The ClusterRole: a set of rules about resources in all namespaces, cluster-scoped resources, and URL paths that belong to no resource. A
 * ClusterRole with an aggregationRule gets its rules from the ClusterRoles that the aggregationRule selects.
 * Source: pkg/registry/rbac/clusterrole and pkg/apis/rbac of v1.33.
 */
import { allErrors, type FieldError, required } from '../../../../machinery/field-error.ts';
import { labelSelectorErrors } from '../../../../machinery/labels.ts';
import { pathSegmentErrors } from '../../../../machinery/names.ts';
import { kind } from '../../../declaration.ts';
import type { ClusterRole } from '../../../generated/types.ts';
import { roleColumns, validateRules } from '../role-rules.ts';

const SELECTORS = 'aggregationRule.clusterRoleSelectors';

function validateAggregation({ aggregationRule }: ClusterRole): FieldError[] {
  if (aggregationRule === undefined) return [];
  const { clusterRoleSelectors: selectors = [] } = aggregationRule;
  if (selectors.length === 0)
    return [required(SELECTORS, 'at least one clusterRoleSelector required if aggregationRule is non-nil')];
  return allErrors(...selectors.map((selector, index) => labelSelectorErrors(selector, `${SELECTORS}[${index}]`)));
}

export const clusterRoleKind = kind<ClusterRole>('rbac.authorization.k8s.io/v1', 'ClusterRole', {
  scope: 'Cluster',
  names: pathSegmentErrors,
  rules: [(role) => validateRules(role, false), validateAggregation],
  columns: roleColumns,
});
