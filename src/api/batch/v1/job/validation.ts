/** Validation of Jobs. Source: pkg/apis/batch/validation of v1.33 (behavior and wording). */

import { defined } from '../../../../machinery/drop-undefined.ts';
import { allErrors, type FieldError, invalid, required } from '../../../../machinery/field-error.ts';
import { labelSelectorErrors, labelSelectorMatcher } from '../../../../machinery/labels.ts';
import { dns1123LabelErrors } from '../../../../machinery/names.ts';
import { IMMUTABLE_TEXT } from '../../../../machinery/object-meta.ts';
import { sameValue } from '../../../core/v1/pod/compare.ts';
import type { Job, JobSpec, PodTemplateSpec } from '../../../generated/types.ts';
import { generatedLabels } from './selector.ts';
import { validateSharedSpec } from './spec.ts';

function validateGenerated(job: Job): FieldError[] {
  const { selector, manualSelector, template } = job.spec ?? {};
  if (manualSelector === true || selector === undefined) return [];
  const labels = template?.metadata?.labels ?? {};
  const expected = generatedLabels(job);
  const errors = Object.entries(expected).flatMap(([key, value]) => {
    if (labels[key] === value) return [];
    const field = `spec.template.metadata.labels[${key}]`;
    return labels[key] === undefined
      ? [required(field, `must be '${value}'`)]
      : [invalid(field, labels, `must be '${value}'`)];
  });
  if (labelSelectorErrors(selector, '').length === 0 && !labelSelectorMatcher(selector)(expected))
    errors.push(invalid('spec.selector', selector, '`selector` not auto-generated'));
  return errors;
}

function validateSelector({ selector, template }: Partial<JobSpec>): FieldError[] {
  if (selector === undefined) return [required('spec.selector')];
  const errors = labelSelectorErrors(selector, 'spec.selector');
  const labels = template?.metadata?.labels ?? {};
  if (errors.length === 0 && !labelSelectorMatcher(selector)(labels))
    errors.push(invalid('spec.template.metadata.labels', labels, '`selector` does not match template `labels`'));
  return errors;
}

function validateHostname({ metadata, spec }: Job): FieldError[] {
  if (spec?.completionMode !== 'Indexed' || !spec.completions || spec.completions < 0) return [];
  const hostname = `${metadata.name}-${spec.completions - 1}`;
  if (dns1123LabelErrors(hostname).length === 0) return [];
  return [invalid('metadata.name', metadata.name, `will not able to create pod with invalid DNS label: ${hostname}`)];
}

export const validateJob = (job: Job, old?: Job): FieldError[] =>
  allErrors(
    validateGenerated(job),
    job.spec === undefined ? [] : validateSharedSpec(job.spec, old?.spec, 'spec'),
    validateSelector(job.spec ?? {}),
    validateHostname(job),
  );

/** Returns the old template with the parts of the new template that may change while the Job is suspended and has not started yet. */
function withScheduling(old: PodTemplateSpec, { metadata, spec }: PodTemplateSpec): PodTemplateSpec {
  const { nodeSelector, tolerations, schedulingGates, affinity } = spec ?? {};
  return {
    ...old,
    metadata: defined({ ...old.metadata, labels: metadata?.labels, annotations: metadata?.annotations }),
    spec: {
      ...old.spec,
      nodeSelector,
      tolerations,
      schedulingGates,
      affinity: defined({ ...old.spec?.affinity, nodeAffinity: affinity?.nodeAffinity }),
    },
  } as PodTemplateSpec;
}

function validateCompletions({ completions, completionMode, parallelism }: JobSpec, old: JobSpec): FieldError[] {
  const path = 'spec.completions';
  if (completions === old.completions) return [];
  if (completionMode !== 'Indexed') return [invalid(path, completions, IMMUTABLE_TEXT)];
  return completions === undefined || completions === parallelism
    ? []
    : [invalid(path, completions, 'can only be modified in tandem with spec.parallelism')];
}

const FIXED = ['completionMode', 'podFailurePolicy', 'backoffLimitPerIndex', 'managedBy', 'successPolicy'] as const;

/**
 * An indexed Job may change its completions together with its parallelism. A suspended Job that has not started may change the parts of its
 * template that withScheduling() copies.
 */
export function validateJobUpdate({ spec }: Job, { spec: oldSpec, status }: Job): FieldError[] {
  if (spec === undefined || oldSpec === undefined) return [];
  const isOpen = oldSpec.suspend === true && status?.startTime === undefined;
  const allowed = isOpen ? withScheduling(oldSpec.template ?? {}, spec.template ?? {}) : oldSpec.template;
  const fixed = (name: keyof JobSpec): FieldError[] =>
    sameValue(spec[name], oldSpec[name]) ? [] : [invalid(`spec.${name}`, spec[name] ?? null, IMMUTABLE_TEXT)];
  return allErrors(
    validateCompletions(spec, oldSpec),
    fixed('selector'),
    sameValue(spec.template, allowed) ? [] : [invalid('spec.template', spec.template, IMMUTABLE_TEXT)],
    ...FIXED.map(fixed),
  );
}
