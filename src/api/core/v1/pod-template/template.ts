/**
 * Templates for Pods: their defaults, validation and warnings. A template is validated like a Pod. Admission applies only to the Pods
 * created from it.
 * Source: ValidatePodTemplateSpec of pkg/apis/core/validation, and pkg/api/pod of v1.33.
 */
import { allErrors, type FieldError, firstErrors, forbidden, invalid } from '../../../../machinery/field-error.ts';
import { copyJson } from '../../../../machinery/json-value.ts';
import type { Pod, PodTemplateSpec } from '../../../generated/types.ts';
import { sameValue } from '../pod/compare.ts';
import type { FormFault } from '../pod/compatibility/annotation-json.ts';
import { validateAppArmorMatch } from '../pod/compatibility/app-armor.ts';
import { deferAnnotations, droppedDeferFields, readDeferSettings } from '../pod/compatibility/defer-settings.ts';
import { dropDisabledFields } from '../pod/compatibility/disabled-fields.ts';
import { readOlderForms } from '../pod/compatibility/older-forms.ts';
import { specOf } from '../pod/containers.ts';
import { defaultPod, defaultPodSpec } from '../pod/defaults.ts';
import { validateDeletionCost } from '../pod/deletion-cost.ts';
import { formFaults, validatePod } from '../pod/validation/validation.ts';
import { podWarnings } from '../pod/validation/warnings.ts';

/** The Pod and the template share the labels, annotations and spec. */
const podOf = (template: PodTemplateSpec | undefined): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: 'template',
    namespace: 'default',
    labels: template?.metadata?.labels ?? {},
    annotations: template?.metadata?.annotations ?? {},
  },
  spec: specOf(template ?? {}),
});

export const containersCell = (template: PodTemplateSpec | undefined, field: 'name' | 'image'): string =>
  (template?.spec?.containers ?? []).map((container) => container[field] ?? '').join(',');

export function defaultTemplate(template: PodTemplateSpec): void {
  template.spec ??= { containers: [] };
  template.spec.containers ??= [];
  defaultPodSpec(template.spec);
}

/** Drops the fields of disabled feature gates, except those that `old` also has. */
export const dropDisabledTemplateFields = (template: PodTemplateSpec | undefined, old?: PodTemplateSpec): void =>
  dropDisabledFields(podOf(template), old && podOf(old));

/**
 * Like podOf(), but returns a copy in which absent fields are set from annotations or to their defaults. The template itself keeps the
 * annotations without the fields.
 */
export function expandedTemplate(template: PodTemplateSpec | undefined): Pod {
  const pod = copyJson(podOf(template));
  readOlderForms(pod);
  readDeferSettings(pod);
  if (pod.spec !== undefined) defaultPodSpec(pod.spec);
  return pod;
}

const inTemplate = (path: string, template: string): string => `${template}.${path.replace(/^metadata\./, '')}`;

function faultsOf(template: PodTemplateSpec | undefined): FormFault[] {
  const pod = expandedTemplate(template);
  defaultPod(pod);
  return formFaults(pod);
}

/**
 * `old`: the template that is replaced; undefined on create. On create, the annotations of older-forms.ts and defer-settings.ts must equal
 * the fields that they represent. On update, they must only be decodable, and only if any annotation has changed. The AppArmor annotations
 * must always match the fields.
 */
export function validateTemplate(
  template: PodTemplateSpec | undefined,
  old: PodTemplateSpec | undefined,
  path: string,
): FieldError[] {
  const pod = expandedTemplate(template);
  const isRead = !sameValue(template?.metadata?.annotations, old?.metadata?.annotations);
  const faults = isRead ? faultsOf(template).filter(({ differs }) => old === undefined || !differs) : [];
  const errors = firstErrors(() =>
    allErrors(
      validatePod(pod, { isTemplate: true }),
      validateAppArmorMatch(pod),
      validateDeletionCost(pod, old),
      faults.map((fault) => invalid(fault.path, fault.text, fault.cause)),
    ),
  ).map((error) => ({ ...error, field: inTemplate(error.field, path) }));
  if ((pod.spec?.ephemeralContainers ?? []).length > 0)
    errors.push(forbidden(`${path}.spec.ephemeralContainers`, 'ephemeral containers not allowed in pod template'));
  return errors;
}

/** `old`: the template that is replaced; undefined on create. */
export function templateWarnings(
  template: PodTemplateSpec | undefined,
  old: PodTemplateSpec | undefined,
  path: string,
): string[] {
  const pod = expandedTemplate(template);
  const warnings = podWarnings(pod).map((sentence) => `${path}.${sentence}`);
  if (old === undefined) return warnings;
  const dropped = droppedDeferFields(specOf(pod), specOf(podOf(old)));
  return [
    ...warnings,
    ...faultsOf(template).map(
      (fault) => `${inTemplate(fault.path, path)}: ${fault.cause}; otherwise no Pod can be created from the template`,
    ),
    ...(dropped.length === 0
      ? []
      : [
          `${path}.spec: the update omits and therefore removes ${dropped.join(', ')}; to restore them, apply the manifest again; clients whose types lack these fields, such as kubectl rollout undo, keep only the annotations ${deferAnnotations.join(' and ')}, which can set them`,
        ]),
  ];
}
