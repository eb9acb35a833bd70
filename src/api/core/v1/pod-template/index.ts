/**
 * The PodTemplate: a template for Pods. A template is validated like a Pod. Admission applies only to the Pods created from it.
 * Source: pkg/registry/core/podtemplate, pkg/apis/core/validation and pkg/printers of v1.33.
 */
import { allErrors, type FieldError, firstErrors, forbidden, invalid } from '../../../../machinery/field-error.ts';
import { kind } from '../../../declaration.ts';
import type { Pod, PodTemplate } from '../../../generated/types.ts';
import { column, labelsCell, nameColumn } from '../../../table.ts';
import { sameValue } from '../pod/compare.ts';
import type { FormFault } from '../pod/compatibility/annotation-json.ts';
import { validateAppArmorMatch } from '../pod/compatibility/app-armor.ts';
import { deferAnnotations, droppedDeferFields, readDeferSettings } from '../pod/compatibility/defer-settings.ts';
import { dropDisabledFields } from '../pod/compatibility/disabled-fields.ts';
import { readOlderForms } from '../pod/compatibility/older-forms.ts';
import { specOf } from '../pod/containers.ts';
import { defaultPod, defaultPodSpec } from '../pod/defaults.ts';
import { formFaults, validatePod } from '../pod/validation/validation.ts';
import { podWarnings } from '../pod/validation/warnings.ts';

/** Returns a Pod with the template's labels, annotations and spec. The Pod and the template share these objects. */
const podOf = ({ template }: PodTemplate): Pod => ({
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

/**
 * Like podOf(), but returns a copy in which absent fields are set from annotations or to their defaults. In the template itself, fields
 * given in annotations remain only in the annotations.
 */
function expanded(object: PodTemplate): Pod {
  const pod = structuredClone(podOf(object));
  readOlderForms(pod);
  readDeferSettings(pod);
  if (pod.spec !== undefined) defaultPodSpec(pod.spec);
  return pod;
}

const pathInTemplate = (path: string): string => `template.${path.replace(/^metadata\./, '')}`;

function faultsOf(object: PodTemplate): FormFault[] {
  const pod = expanded(object);
  defaultPod(pod);
  return formFaults(pod);
}

/**
 * Validates a template. `old`: the template that is replaced; undefined on create. On create, the annotations of older-forms.ts and
 * defer-settings.ts must equal the fields that they represent. On update, they must only be decodable, and only if any annotation has
 * changed. The AppArmor annotations must always match the fields.
 */
function validateTemplate(object: PodTemplate, old?: PodTemplate): FieldError[] {
  const pod = expanded(object);
  const isRead = !sameValue(object.template?.metadata?.annotations, old?.template?.metadata?.annotations);
  const faults = isRead ? faultsOf(object).filter(({ differs }) => old === undefined || !differs) : [];
  const errors = firstErrors(() =>
    allErrors(
      validatePod(pod),
      validateAppArmorMatch(pod),
      faults.map(({ path, text, cause }) => invalid(path, text, cause)),
    ),
  ).map((error) => ({ ...error, field: pathInTemplate(error.field) }));
  if ((pod.spec?.ephemeralContainers ?? []).length > 0)
    errors.push(forbidden('template.spec.ephemeralContainers', 'ephemeral containers not allowed in pod template'));
  return errors;
}

function templateWarnings(object: PodTemplate, old?: PodTemplate): string[] {
  if (object.metadata.generation === old?.metadata.generation) return [];
  const pod = expanded(object);
  const warnings = podWarnings(pod).map((sentence) => `template.${sentence}`);
  if (old === undefined) return warnings;
  const dropped = droppedDeferFields(specOf(pod), specOf(podOf(old)));
  return [
    ...warnings,
    ...faultsOf(object).map(
      ({ path, cause }) => `${pathInTemplate(path)}: ${cause}; otherwise no Pod can be created from the template`,
    ),
    ...(dropped.length === 0
      ? []
      : [
          `template.spec: the update omits and therefore removes ${dropped.join(', ')}; clients whose types lack these fields can set them in the annotations ${deferAnnotations.join(' and ')}`,
        ]),
  ];
}

const containersOf = ({ template }: PodTemplate) => template?.spec?.containers ?? [];

export const podTemplateKind = kind<PodTemplate>('v1', 'PodTemplate', {
  defaults(object) {
    object.template ??= {};
    object.template.spec ??= { containers: [] };
    object.template.spec.containers ??= [];
    defaultPodSpec(object.template.spec);
  },
  prepareForCreate(object) {
    object.metadata.generation = 1;
    dropDisabledFields(podOf(object));
  },
  prepareForUpdate(object, old) {
    dropDisabledFields(podOf(object), podOf(old));
    const generation = old.metadata.generation ?? 0;
    object.metadata.generation = sameValue(object.template, old.template) ? generation : generation + 1;
  },
  rules: [validateTemplate],
  warnings: templateWarnings,
  columns: [
    nameColumn,
    column('Containers', 'The names of the app containers.', (object) =>
      containersOf(object)
        .map(({ name }) => name)
        .join(','),
    ),
    column('Images', 'The images of the app containers.', (object) =>
      containersOf(object)
        .map(({ image = '' }) => image)
        .join(','),
    ),
    column('Pod Labels', 'The labels of Pods created from the template.', ({ template }) =>
      labelsCell(template?.metadata?.labels),
    ),
  ],
});
