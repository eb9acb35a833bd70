/**
 * The common parts of Roles and ClusterRoles.
 * Source: pkg/apis/rbac/validation of v1.33 (behavior and wording); the server's default table for kinds without a printer.
 */
import { allErrors, type FieldError, invalid, required } from '../../../machinery/field-error.ts';
import type { KubeObject } from '../../../machinery/meta.ts';
import type { PolicyRule } from '../../generated/types.ts';
import { column, nameColumn } from '../../table.ts';

export const RBAC_GROUP = 'rbac.authorization.k8s.io';

interface WithRules extends KubeObject {
  rules?: readonly PolicyRule[];
}

const isEmpty = (list: readonly string[] | undefined): boolean => (list ?? []).length === 0;

function validateRule(rule: PolicyRule, field: string, namespaced: boolean): FieldError[] {
  const { verbs, apiGroups, resources, resourceNames, nonResourceURLs } = rule;
  const errors = isEmpty(verbs) ? [required(`${field}.verbs`, 'verbs must contain at least one value')] : [];
  if (!isEmpty(nonResourceURLs)) {
    const refuse = (text: string): FieldError => invalid(`${field}.nonResourceURLs`, nonResourceURLs, text);
    if (namespaced) errors.push(refuse('namespaced rules cannot apply to non-resource URLs'));
    if (![apiGroups, resources, resourceNames].every(isEmpty))
      errors.push(refuse('rules cannot apply to both regular resources and non-resource URLs'));
    return errors;
  }
  if (isEmpty(apiGroups))
    errors.push(required(`${field}.apiGroups`, 'resource rules must supply at least one api group'));
  if (isEmpty(resources))
    errors.push(required(`${field}.resources`, 'resource rules must supply at least one resource'));
  return errors;
}

/** If `namespaced` is true, the rules cannot be about URL paths that belong to no resource. */
export const validateRules = ({ rules = [] }: WithRules, namespaced: boolean): FieldError[] =>
  allErrors(...rules.map((rule, index) => validateRule(rule, `rules[${index}]`, namespaced)));

export const roleColumns = [
  nameColumn,
  column<KubeObject>(
    'Created At',
    'The time at which the object was created.',
    ({ metadata }) => metadata.creationTimestamp ?? '<unknown>',
    { type: 'date' },
  ),
];
