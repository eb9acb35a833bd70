/**
 * The PodTemplate: a template for Pods.
 * Source: pkg/registry/core/podtemplate and pkg/printers of v1.33.
 */
import { kind } from '../../../declaration.ts';
import type { PodTemplate } from '../../../generated/types.ts';
import { countGeneration, startGeneration } from '../../../generation.ts';
import { column, labelsCell, nameColumn } from '../../../table.ts';
import {
  containersCell,
  defaultTemplate,
  dropDisabledTemplateFields,
  templateWarnings,
  validateTemplate,
} from './template.ts';

export const podTemplateKind = kind<PodTemplate>('v1', 'PodTemplate', {
  defaults(object) {
    object.template ??= {};
    defaultTemplate(object.template);
  },
  prepareForCreate(object) {
    startGeneration(object);
    dropDisabledTemplateFields(object.template);
  },
  prepareForUpdate(object, old) {
    dropDisabledTemplateFields(object.template, old.template);
    countGeneration(object, old, [object.template, old.template]);
  },
  rules: [(object, old) => validateTemplate(object.template, old?.template, 'template')],
  warnings: (object, old) =>
    object.metadata.generation === old?.metadata.generation
      ? []
      : templateWarnings(object.template, old?.template, 'template'),
  columns: [
    nameColumn,
    column('Containers', 'The names of the app containers.', ({ template }) => containersCell(template, 'name')),
    column('Images', 'The images of the app containers.', ({ template }) => containersCell(template, 'image')),
    column('Pod Labels', 'The labels of Pods created from the template.', ({ template }) =>
      labelsCell(template?.metadata?.labels),
    ),
  ],
});
