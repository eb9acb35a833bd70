/**
 * The CronJob: creates Jobs at the times of a schedule.
 * Source: pkg/registry/batch/cronjob, pkg/apis/batch and pkg/printers of v1.33.
 */
import { containersCell, defaultTemplate, dropDisabledTemplateFields } from '../../../core/v1/pod-template/template.ts';
import { nameWarnings } from '../../../core/v1/pod-template/workload-warnings.ts';
import { kind } from '../../../declaration.ts';
import type { CronJob, PodTemplateSpec } from '../../../generated/types.ts';
import { countGeneration, startGeneration } from '../../../generation.ts';
import { ageCell, ageColumn, column, nameColumn, selectorCell } from '../../../table.ts';
import { defaultFailurePolicy } from '../job/policies.ts';
import { specWarnings } from '../job/warnings.ts';
import { validateCronJob } from './validation.ts';

const SUCCESSFUL_HISTORY = 3;
const FAILED_HISTORY = 1;
/** The path `spec.spec.schedule` is wrong in upstream's text too. */
const ZONE_WARNING =
  'cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details';

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
    defaultFailurePolicy(spec.jobTemplate.spec);
  },
  status: { initial: () => ({}) },
  prepareForCreate(cronJob) {
    startGeneration(cronJob);
    dropDisabledTemplateFields(templateOf(cronJob));
  },
  prepareForUpdate(cronJob, old) {
    dropDisabledTemplateFields(templateOf(cronJob), templateOf(old));
    countGeneration(cronJob, old, [cronJob.spec, old.spec]);
  },
  rules: [validateCronJob],
  warnings: (cronJob, old) => [
    ...(old === undefined ? nameWarnings(cronJob) : []),
    ...(cronJob.metadata.generation === old?.metadata.generation
      ? []
      : specWarnings(cronJob.spec?.jobTemplate?.spec ?? {}, old?.spec?.jobTemplate?.spec, 'spec.jobTemplate.spec')),
    ...(old !== undefined && cronJob.spec?.schedule?.includes('TZ') === true ? [ZONE_WARNING] : []),
  ],
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
      ({ spec }) => selectorCell(spec?.jobTemplate?.spec?.selector),
      { wide: true },
    ),
  ],
});
