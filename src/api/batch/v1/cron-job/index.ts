/**
 * The CronJob: creates Jobs at the times of a schedule.
 * Source: pkg/registry/batch/cronjob, pkg/apis/batch and pkg/printers of v1.33.
 */
import { sameValue } from '../../../core/v1/pod/compare.ts';
import {
  containersCell,
  defaultTemplate,
  dropDisabledTemplateFields,
  templateWarnings,
} from '../../../core/v1/pod-template/template.ts';
import { kind } from '../../../declaration.ts';
import type { CronJob, PodTemplateSpec } from '../../../generated/types.ts';
import { ageCell, ageColumn, column, labelsCell, nameColumn } from '../../../table.ts';
import { validateCronJob } from './validation.ts';

const SUCCESSFUL_HISTORY = 3;
const FAILED_HISTORY = 1;

const templateOf = (cronJob: CronJob | undefined): PodTemplateSpec | undefined =>
  cronJob?.spec?.jobTemplate?.spec?.template;

export const cronJobKind = kind<CronJob>('batch/v1', 'CronJob', {
  shortNames: ['cj'],
  categories: ['all'],
  defaults(cronJob) {
    cronJob.spec ??= { schedule: '', jobTemplate: {} };
    const { spec } = cronJob;
    spec.concurrencyPolicy ||= 'Allow';
    spec.suspend ??= false;
    spec.successfulJobsHistoryLimit ??= SUCCESSFUL_HISTORY;
    spec.failedJobsHistoryLimit ??= FAILED_HISTORY;
    spec.jobTemplate ??= {};
    spec.jobTemplate.spec ??= { template: {} };
    spec.jobTemplate.spec.template ??= {};
    defaultTemplate(spec.jobTemplate.spec.template);
  },
  status: { initial: () => ({}) },
  prepareForCreate(cronJob) {
    cronJob.metadata.generation = 1;
    dropDisabledTemplateFields(templateOf(cronJob));
  },
  prepareForUpdate(cronJob, old) {
    dropDisabledTemplateFields(templateOf(cronJob), templateOf(old));
    const generation = old.metadata.generation ?? 0;
    cronJob.metadata.generation = sameValue(cronJob.spec, old.spec) ? generation : generation + 1;
  },
  rules: [validateCronJob],
  warnings: (cronJob, old) =>
    cronJob.metadata.generation === old?.metadata.generation
      ? []
      : templateWarnings(templateOf(cronJob), templateOf(old), 'spec.jobTemplate.spec.template'),
  columns: [
    nameColumn,
    column('Schedule', 'When Jobs are created.', ({ spec }) => spec?.schedule ?? ''),
    column('Timezone', 'The time zone of the schedule.', ({ spec }) => spec?.timeZone ?? '<none>'),
    column('Suspend', 'Whether no Jobs are created.', ({ spec }) =>
      spec?.suspend === undefined ? '<unset>' : spec.suspend ? 'True' : 'False',
    ),
    column('Active', 'The number of running Jobs.', ({ status }) => status?.active?.length ?? 0, { type: 'integer' }),
    column('Last Schedule', 'The time since the last Job was created.', ({ status }, { now }) =>
      status?.lastScheduleTime === undefined ? '<none>' : ageCell(status.lastScheduleTime, now),
    ),
    ageColumn,
    column('Containers', 'The names of the app containers.', (cronJob) => containersCell(templateOf(cronJob), 'name'), {
      wide: true,
    }),
    column('Images', 'The images of the app containers.', (cronJob) => containersCell(templateOf(cronJob), 'image'), {
      wide: true,
    }),
    column(
      'Selector',
      'The labels of the Pods of the Jobs.',
      ({ spec }) => labelsCell(spec?.jobTemplate?.spec?.selector?.matchLabels),
      { wide: true },
    ),
  ],
});
