/**
 * The ReplicationController: keeps a number of Pods of one template running. Its selector consists of labels only, and may change.
 * Source: pkg/registry/core/replicationcontroller, pkg/apis/core and pkg/printers of v1.33.
 */
import { allErrors, type FieldError, required } from '../../../../machinery/field-error.ts';
import { replicaColumns, validateReplicaStatus } from '../../../apps/v1/replica-status.ts';
import { containerColumns, validateLastingTemplate, validateTemplateLabels } from '../../../apps/v1/workload-rules.ts';
import { kind } from '../../../declaration.ts';
import type { ReplicationController } from '../../../generated/types.ts';
import { countGeneration, startGeneration } from '../../../generation.ts';
import { at, nonNegative } from '../../../rules.ts';
import { ageColumn, column, labelsCell, nameColumn, selectorText } from '../../../table.ts';
import { defaultTemplate, dropDisabledTemplateFields, validateTemplate } from '../pod-template/template.ts';
import { workloadWarnings } from '../pod-template/workload-warnings.ts';

const isEmpty = (labels: Record<string, string> | undefined): boolean => Object.keys(labels ?? {}).length === 0;

function defaultLabels({ metadata, spec }: ReplicationController): void {
  const labels = spec?.template?.metadata?.labels;
  if (spec === undefined || labels === undefined) return;
  if (isEmpty(spec.selector)) spec.selector = { ...labels };
  if (isEmpty(metadata.labels)) metadata.labels = { ...labels };
}

function validatePods({ spec = {} }: ReplicationController, old: ReplicationController | undefined): FieldError[] {
  const { selector, template } = spec;
  const noSelector = isEmpty(selector) ? [required('spec.selector')] : [];
  if (template === undefined) return [...noSelector, required('spec.template')];
  return allErrors(
    noSelector,
    isEmpty(selector) ? [] : validateTemplateLabels({ matchLabels: { ...selector } }, template),
    validateTemplate(template, old?.spec?.template, 'spec.template'),
    validateLastingTemplate(template, 'ReplicationController'),
  );
}

const minReadySeconds = at('spec.minReadySeconds', nonNegative);
const replicas = at('spec.replicas', nonNegative);

const validateController = (controller: ReplicationController, old?: ReplicationController): FieldError[] =>
  allErrors(minReadySeconds(controller), replicas(controller), validatePods(controller, old));

export const replicationControllerKind = kind<ReplicationController>('v1', 'ReplicationController', {
  shortNames: ['rc'],
  categories: ['all'],
  defaults(controller) {
    controller.spec ??= {};
    if (controller.spec.template !== undefined) defaultTemplate(controller.spec.template);
    defaultLabels(controller);
    controller.spec.replicas ??= 1;
  },
  scale: ({ spec }) => selectorText({ matchLabels: spec?.selector ?? {} }) ?? '',
  status: { initial: () => ({ replicas: 0 }), rules: [validateReplicaStatus] },
  prepareForCreate(controller) {
    startGeneration(controller);
    dropDisabledTemplateFields(controller.spec?.template);
  },
  prepareForUpdate(controller, old) {
    dropDisabledTemplateFields(controller.spec?.template, old.spec?.template);
    countGeneration(controller, old, [controller.spec, old.spec]);
  },
  rules: [validateController],
  warnings: workloadWarnings,
  // As in upstream, keep the default from before the garbage collector existed.
  propagation: { byDefault: 'Orphan' },
  selectableFields: ({ status }) => ({ 'status.replicas': String(status?.replicas ?? 0) }),
  columns: [
    nameColumn,
    ...replicaColumns,
    ageColumn,
    ...containerColumns,
    column('Selector', 'The labels of the Pods of the object.', ({ spec }) => labelsCell(spec?.selector), {
      wide: true,
    }),
  ],
});
