/** Validation of PodDisruptionBudgets. Source: pkg/apis/policy/validation of v1.33 (behavior and wording). */
import { allErrors, type FieldError, invalid } from '../../../../machinery/field-error.ts';
import { labelSelectorErrors } from '../../../../machinery/labels.ts';
import { conditionListErrors } from '../../../conditions.ts';
import type { PodDisruptionBudget } from '../../../generated/types.ts';
import { intOrPercentErrors, percentLimitErrors } from '../../../int-or-percent.ts';
import { at, nonNegative, oneOf, type Rule } from '../../../rules.ts';

const amountErrors = (value: number | string): string[] => [...intOrPercentErrors(value), ...percentLimitErrors(value)];

const fields: readonly Rule<object>[] = [
  at('spec.minAvailable', amountErrors),
  at('spec.maxUnavailable', amountErrors),
];
const policy = oneOf('spec.unhealthyPodEvictionPolicy', ['AlwaysAllow', 'IfHealthyBudget']);

export function validateBudget(budget: PodDisruptionBudget): FieldError[] {
  const { spec = {} } = budget;
  return allErrors(
    spec.minAvailable !== undefined && spec.maxUnavailable !== undefined
      ? [invalid('spec', spec, 'minAvailable and maxUnavailable cannot be both set')]
      : [],
    ...fields.map((rule) => rule(budget)),
    labelSelectorErrors(spec.selector, 'spec.selector'),
    policy(budget),
  );
}

const numbers = ['disruptionsAllowed', 'currentHealthy', 'desiredHealthy', 'expectedPods'].map((name) =>
  at(`status.${name}`, nonNegative),
);

export const validateBudgetStatus = (budget: PodDisruptionBudget): FieldError[] =>
  allErrors(
    conditionListErrors(budget.status?.conditions, 'status.conditions'),
    ...numbers.map((rule) => rule(budget)),
  );
