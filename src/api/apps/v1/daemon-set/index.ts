/**
 * The DaemonSet: runs one Pod of its template on each node on which the template allows Pods.
 * Source: pkg/registry/apps/daemonset, pkg/apis/apps/v1 and pkg/printers of v1.33.
 */
import { sameValue } from '../../../core/v1/pod/compare.ts';
import {
  defaultTemplate,
  dropDisabledTemplateFields,
  templateWarnings,
} from '../../../core/v1/pod-template/template.ts';
import { kind } from '../../../declaration.ts';
import type { DaemonSet, DaemonSetSpec, DaemonSetStatus } from '../../../generated/types.ts';
import { countGeneration, startGeneration } from '../../../generation.ts';
import { immutable } from '../../../rules.ts';
import { ageColumn, type CellColumn, column, labelsCell, nameColumn } from '../../../table.ts';
import { containerColumns, selectorColumn } from '../workload-rules.ts';
import { validateDaemonSet, validateDaemonSetStatus } from './validation.ts';

/**
 * The annotation with the generation of the template, which each change of the template increments. The Pods have the generation as a
 * label. Source: Convert_apps_DaemonSet_To_v1_DaemonSet of pkg/apis/apps/v1.
 */
export const TEMPLATE_GENERATION = 'deprecated.daemonset.template.generation';

const DEFAULT_HISTORY_LIMIT = 10;

const templateGeneration = ({ metadata }: DaemonSet): number => {
  const text = metadata.annotations?.[TEMPLATE_GENERATION] ?? '';
  return /^[0-9]{1,15}$/.test(text) ? Math.max(1, Number(text)) : 1;
};

const setTemplateGeneration = ({ metadata }: DaemonSet, generation: number): void => {
  metadata.annotations = { ...metadata.annotations, [TEMPLATE_GENERATION]: String(generation) };
};

function defaultSpec(spec: DaemonSetSpec): void {
  spec.template ??= {};
  defaultTemplate(spec.template);
  spec.updateStrategy ??= {};
  spec.updateStrategy.type ||= 'RollingUpdate';
  if (spec.updateStrategy.type === 'RollingUpdate') {
    spec.updateStrategy.rollingUpdate ??= {};
    spec.updateStrategy.rollingUpdate.maxUnavailable ??= 1;
    spec.updateStrategy.rollingUpdate.maxSurge ??= 0;
  }
  spec.revisionHistoryLimit ??= DEFAULT_HISTORY_LIMIT;
}

const countColumn = (name: string, description: string, field: keyof DaemonSetStatus): CellColumn<DaemonSet> =>
  column(name, description, ({ status }) => Number(status?.[field] ?? 0), { type: 'integer' });

export const daemonSetKind = kind<DaemonSet>('apps/v1', 'DaemonSet', {
  shortNames: ['ds'],
  categories: ['all'],
  defaults(daemonSet) {
    daemonSet.spec ??= { template: {} } as DaemonSetSpec;
    defaultSpec(daemonSet.spec);
  },
  status: {
    initial: (): DaemonSetStatus => ({
      currentNumberScheduled: 0,
      numberMisscheduled: 0,
      desiredNumberScheduled: 0,
      numberReady: 0,
    }),
    rules: [validateDaemonSetStatus],
    prepare: (daemonSet, old) => setTemplateGeneration(daemonSet, templateGeneration(old)),
  },
  prepareForCreate(daemonSet) {
    startGeneration(daemonSet);
    setTemplateGeneration(daemonSet, templateGeneration(daemonSet));
    dropDisabledTemplateFields(daemonSet.spec?.template);
  },
  prepareForUpdate(daemonSet, old) {
    dropDisabledTemplateFields(daemonSet.spec?.template, old.spec?.template);
    const isNewTemplate = !sameValue(daemonSet.spec?.template, old.spec?.template);
    setTemplateGeneration(daemonSet, templateGeneration(old) + Number(isNewTemplate));
    countGeneration(daemonSet, old, [daemonSet.spec, old.spec]);
  },
  rules: [validateDaemonSet, immutable('spec.selector')],
  warnings: (daemonSet, old) =>
    old !== undefined && templateGeneration(daemonSet) === templateGeneration(old)
      ? []
      : templateWarnings(daemonSet.spec?.template, old?.spec?.template, 'spec.template'),
  columns: [
    nameColumn,
    countColumn('Desired', 'How many nodes should run a Pod.', 'desiredNumberScheduled'),
    countColumn('Current', 'How many of these nodes have a Pod.', 'currentNumberScheduled'),
    countColumn('Ready', 'How many of these nodes have a Pod that is ready.', 'numberReady'),
    countColumn('Up-to-date', 'How many nodes have a Pod of the current template.', 'updatedNumberScheduled'),
    countColumn('Available', 'How many nodes have a Pod that is available.', 'numberAvailable'),
    column('Node Selector', 'The labels of the nodes that should run a Pod.', ({ spec }) =>
      labelsCell(spec?.template?.spec?.nodeSelector),
    ),
    ageColumn,
    ...containerColumns,
    selectorColumn,
  ],
});
