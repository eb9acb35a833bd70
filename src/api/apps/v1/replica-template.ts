/**
 * The rules for the selector and the template that ReplicaSets and Deployments share.
 * Source: ValidateReplicaSetSpec and ValidatePodTemplateSpecForReplicaSet of pkg/apis/apps/validation of v1.33 (behavior and wording).
 */
import { allErrors, type FieldError, invalid } from '../../../machinery/field-error.ts';
import { labelSelectorErrors } from '../../../machinery/labels.ts';
import { validateTemplate } from '../../core/v1/pod-template/template.ts';
import type { LabelSelector, PodTemplateSpec } from '../../generated/types.ts';
import { validateLastingTemplate, validateRequiredSelector, validateTemplateLabels } from './workload-rules.ts';

interface ReplicaSpec {
  selector?: LabelSelector;
  template?: PodTemplateSpec;
}

/** `old`: the spec that is replaced; undefined on create. */
export function validateReplicaTemplate(
  { selector, template }: ReplicaSpec,
  old: ReplicaSpec | undefined,
): FieldError[] {
  const errors = validateRequiredSelector(selector, 'deployment');
  if (labelSelectorErrors(selector, '').length > 0)
    return [...errors, invalid('spec.selector', selector, 'invalid label selector')];
  return allErrors(
    errors,
    validateTemplateLabels(selector, template),
    validateTemplate(template, old?.template, 'spec.template'),
    validateLastingTemplate(template, 'ReplicaSet'),
  );
}
