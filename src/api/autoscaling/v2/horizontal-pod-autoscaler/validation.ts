/** Validation of HorizontalPodAutoscalers. Source: pkg/apis/autoscaling/validation of v1.33 (behavior and wording). */
import { allErrors, type FieldError, invalid, notSupported, required } from '../../../../machinery/field-error.ts';
import type { V2HorizontalPodAutoscaler, V2HPAScalingPolicy, V2HPAScalingRules } from '../../../generated/types.ts';
import { validateMetric } from './metric-validation.ts';
import { validateReference } from './references.ts';

const MAX_PERIOD_SECONDS = 1800;
const MAX_WINDOW_SECONDS = 3600;

const atMost = (value: number, max: number, path: string): FieldError[] =>
  value > max ? [invalid(path, value, `must be less than or equal to ${max}`)] : [];

const aboveZero = (value: number, path: string): FieldError[] =>
  value <= 0 ? [invalid(path, value, 'must be greater than zero')] : [];

const validatePolicy = ({ type, value, periodSeconds }: V2HPAScalingPolicy, path: string): FieldError[] =>
  allErrors(
    ['Percent', 'Pods'].includes(type) ? [] : [notSupported(`${path}.type`, type, ['Percent', 'Pods'])],
    aboveZero(value, `${path}.value`),
    aboveZero(periodSeconds, `${path}.periodSeconds`),
    atMost(periodSeconds, MAX_PERIOD_SECONDS, `${path}.periodSeconds`),
  );

const SELECT_POLICIES = ['Disabled', 'Max', 'Min'];

function validateRules(rules: V2HPAScalingRules | undefined, path: string): FieldError[] {
  if (rules === undefined) return [];
  const { stabilizationWindowSeconds: window = 0, selectPolicy, policies = [] } = rules;
  return allErrors(
    window < 0 ? [invalid(`${path}.stabilizationWindowSeconds`, window, 'must be greater than or equal to zero')] : [],
    atMost(window, MAX_WINDOW_SECONDS, `${path}.stabilizationWindowSeconds`),
    selectPolicy === undefined || SELECT_POLICIES.includes(selectPolicy)
      ? []
      : [notSupported(`${path}.selectPolicy`, selectPolicy, SELECT_POLICIES)],
    policies.length === 0 ? [required(`${path}.policies`, 'must specify at least one Policy')] : [],
    policies.flatMap((policy, index) => validatePolicy(policy, `${path}.policies[${index}]`)),
  );
}

/** The feature gate HPAScaleToZero is off, as by default in v1.33. */
export function validateAutoscaler({ spec }: V2HorizontalPodAutoscaler): FieldError[] {
  const {
    minReplicas = 1,
    maxReplicas = 0,
    scaleTargetRef = { kind: '', name: '' },
    metrics = [],
    behavior,
  } = spec ?? {};
  return allErrors(
    minReplicas < 1 ? [invalid('spec.minReplicas', minReplicas, 'must be greater than or equal to 1')] : [],
    maxReplicas < 1 ? [invalid('spec.maxReplicas', maxReplicas, 'must be greater than 0')] : [],
    maxReplicas < minReplicas
      ? [invalid('spec.maxReplicas', maxReplicas, 'must be greater than or equal to `minReplicas`')]
      : [],
    validateReference(scaleTargetRef, 'spec.scaleTargetRef'),
    metrics.flatMap((metric, index) => validateMetric(metric, `spec.metrics[${index}]`)),
    validateRules(behavior?.scaleUp, 'spec.behavior.scaleUp'),
    validateRules(behavior?.scaleDown, 'spec.behavior.scaleDown'),
  );
}
