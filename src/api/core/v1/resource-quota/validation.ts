/** Validation of ResourceQuotas. Source: pkg/apis/core/validation of v1.33 (behavior and wording). */
import { allErrors, type FieldError, invalid, required } from '../../../../machinery/field-error.ts';
import { IMMUTABLE_TEXT } from '../../../../machinery/object-meta.ts';
import type { ResourceQuota, ResourceQuotaSpec, ScopedResourceSelectorRequirement } from '../../../generated/types.ts';
import { isQuotaName, validateQuotaList } from './resource-names.ts';

const EXISTS_SCOPES = new Set([
  'BestEffort',
  'NotBestEffort',
  'Terminating',
  'NotTerminating',
  'CrossNamespacePodAffinity',
]);
const SCOPES = new Set([...EXISTS_SCOPES, 'PriorityClass']);
const CONFLICTS = [
  ['BestEffort', 'NotBestEffort'],
  ['Terminating', 'NotTerminating'],
] as const;
const podAmounts = new Set(['cpu', 'memory', 'limits.cpu', 'limits.memory', 'requests.cpu', 'requests.memory']);

/** Whether a quota with the scope can limit the resource. True for an unknown scope, which is an error of its own. */
const appliesTo = (scope: string, resource: string): boolean =>
  !SCOPES.has(scope) || resource === 'pods' || (scope !== 'BestEffort' && podAmounts.has(resource));

/** `value`: the value shown in the errors. */
const resourceErrors = ({ hard }: ResourceQuotaSpec, scope: string, path: string, value: unknown): FieldError[] =>
  Object.keys(hard ?? {})
    .filter((name) => isQuotaName(name) && !appliesTo(scope, name))
    .map(() => invalid(path, value, 'unsupported scope applied to resource'));

const conflictErrors = (scopes: readonly string[], path: string, value: unknown): FieldError[] =>
  CONFLICTS.filter((pair) => pair.every((scope) => scopes.includes(scope))).map(() =>
    invalid(path, value, 'conflicting scopes'),
  );

function validateScopes(spec: ResourceQuotaSpec): FieldError[] {
  const path = 'spec.scopes';
  const { scopes = [] } = spec;
  const errors = scopes.flatMap((scope) => [
    ...(SCOPES.has(scope) ? [] : [invalid(path, scopes, 'unsupported scope')]),
    ...resourceErrors(spec, scope, path, scopes),
  ]);
  return allErrors(errors, conflictErrors(scopes, path, scopes));
}

function validateOperator({ scopeName, operator, values = [] }: ScopedResourceSelectorRequirement): FieldError[] {
  const path = 'spec.scopeSelector.matchExpressions';
  const errors: FieldError[] = [];
  if (EXISTS_SCOPES.has(scopeName) && operator !== 'Exists')
    errors.push(
      invalid(
        `${path}.operator`,
        operator,
        "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity",
      ),
    );
  if (operator === 'In' || operator === 'NotIn') {
    if (values.length === 0)
      errors.push(
        required(`${path}.values`, "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"),
      );
  } else if (operator === 'Exists' || operator === 'DoesNotExist') {
    if (values.length > 0)
      errors.push(
        invalid(
          `${path}.values`,
          values,
          "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
        ),
      );
  } else errors.push(invalid(`${path}.operator`, operator, 'not a valid selector operator'));
  return errors;
}

function validateScopeSelector(spec: ResourceQuotaSpec): FieldError[] {
  const path = 'spec.scopeSelector.matchExpressions';
  const expressions = spec.scopeSelector?.matchExpressions ?? [];
  const errors = expressions.flatMap((expression) =>
    allErrors(
      SCOPES.has(expression.scopeName) ? [] : [invalid(`${path}.scopeName`, expression.scopeName, 'unsupported scope')],
      resourceErrors(spec, expression.scopeName, path, spec.scopeSelector),
      validateOperator(expression),
    ),
  );
  const scopes = expressions.map(({ scopeName }) => scopeName);
  return allErrors(errors, conflictErrors(scopes, path, spec.scopes ?? null));
}

export const validateQuota = ({ spec = {} }: ResourceQuota): FieldError[] =>
  allErrors(validateQuotaList(spec.hard, 'spec.hard'), validateScopes(spec), validateScopeSelector(spec));

const sortedScopes = ({ spec }: ResourceQuota): string => [...new Set(spec?.scopes ?? [])].sort().join();

export const validateQuotaUpdate = (quota: ResourceQuota, old: ResourceQuota): FieldError[] =>
  sortedScopes(quota) === sortedScopes(old) ? [] : [invalid('spec.scopes', quota.spec?.scopes ?? null, IMMUTABLE_TEXT)];

export const validateQuotaStatus = ({ status }: ResourceQuota): FieldError[] =>
  allErrors(validateQuotaList(status?.hard, 'status.hard'), validateQuotaList(status?.used, 'status.used'));
