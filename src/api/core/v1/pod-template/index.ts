/**
 * The PodTemplate: what Pods are to be made of. Its template is judged as a Pod is; what admission adds, a Pod gets when it is made.
 * Source: pkg/registry/core/podtemplate, pkg/apis/core/validation and pkg/printers of v1.33.
 */
import { type FieldError, forbidden } from '../../../../machinery/field-error.ts';
import { dns1123SubdomainErrors } from '../../../../machinery/names.ts';
import { validateObjectMeta, validateObjectMetaUpdate } from '../../../../machinery/object-meta.ts';
import type { Pod, PodTemplate } from '../../../generated/types.ts';
import type { KindDefinition } from '../../../kind.ts';
import { column, labelsCell, nameColumn } from '../../../table.ts';
import { validateAppArmorMatch } from '../pod/app-armor.ts';
import { sameValue } from '../pod/compare.ts';
import { defaultPodSpec } from '../pod/defaults.ts';
import { dropDisabledFields } from '../pod/disabled-fields.ts';
import { validatePod } from '../pod/validation.ts';
import { podWarnings } from '../pod/warnings.ts';

/** A Pod of the template, which shares its spec. */
const podOf = ({ template }: PodTemplate): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    ...{ name: 'template', namespace: 'default' },
    labels: template?.metadata?.labels ?? {},
    annotations: template?.metadata?.annotations ?? {},
  },
  spec: template?.spec ?? { containers: [] },
});

function validateTemplate(object: PodTemplate): FieldError[] {
  const pod = podOf(object);
  const errors = [...validatePod(pod), ...validateAppArmorMatch(pod)].map((error) => ({
    ...error,
    field: `template.${error.field.replace(/^metadata\./, '')}`,
  }));
  if ((pod.spec?.ephemeralContainers ?? []).length > 0)
    errors.push(forbidden('template.spec.ephemeralContainers', 'ephemeral containers not allowed in pod template'));
  return errors;
}

const containersOf = ({ template }: PodTemplate) => template?.spec?.containers ?? [];

export const podTemplateKind: KindDefinition<PodTemplate> = {
  group: '',
  version: 'v1',
  kind: 'PodTemplate',
  plural: 'podtemplates',
  singular: 'podtemplate',
  shortNames: [],
  categories: [],
  namespaced: true,
  schema: 'PodTemplate',
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
  validateCreate: (object) => [
    ...validateObjectMeta(object.metadata, { namespaced: true, nameErrors: dns1123SubdomainErrors }),
    ...validateTemplate(object),
  ],
  validateUpdate: (object, old) => [
    ...validateObjectMetaUpdate(object.metadata, old.metadata),
    ...validateTemplate(object),
  ],
  warnings: (object, old) =>
    object.metadata.generation === old?.metadata.generation
      ? []
      : podWarnings(podOf(object)).map((sentence) => `template.${sentence}`),
  subresources: {},
  columns: [
    nameColumn,
    column('Containers', 'The names of its app containers.'),
    column('Images', 'Their images.'),
    column('Pod Labels', 'The labels that a Pod of it has.'),
  ],
  row: (object) => [
    object.metadata.name,
    containersOf(object)
      .map(({ name }) => name)
      .join(','),
    containersOf(object)
      .map(({ image = '' }) => image)
      .join(','),
    labelsCell(object.template?.metadata?.labels),
  ],
};
