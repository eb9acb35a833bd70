/**
 * The Job: runs Pods until a number of them have succeeded.
 * Source: pkg/registry/batch/job, pkg/apis/batch and pkg/printers of v1.33.
 */
import { parseTime } from '../../../../machinery/time.ts';
import { sameValue } from '../../../core/v1/pod/compare.ts';
import { MAX_INT32 } from '../../../core/v1/pod/validation/validate-values.ts';
import { containersCell, defaultTemplate, dropDisabledTemplateFields } from '../../../core/v1/pod-template/template.ts';
import { nameWarnings } from '../../../core/v1/pod-template/workload-warnings.ts';
import { kind } from '../../../declaration.ts';
import type { Job, JobSpec } from '../../../generated/types.ts';
import { countGeneration, startGeneration } from '../../../generation.ts';
import type { WriteContext } from '../../../kind.ts';
import { onUpdate } from '../../../rules.ts';
import { ageColumn, column, humanDuration, nameColumn, selectorCell } from '../../../table.ts';
import { defaultFailurePolicy } from './policies.ts';
import { generateSelector } from './selector.ts';
import { validateJobStatus } from './status.ts';
import { validateJob, validateJobUpdate } from './validation.ts';
import { specWarnings } from './warnings.ts';

const DEFAULT_BACKOFF_LIMIT = 6;
const PRESERVED =
  'child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning';

function defaultJobSpec(spec: JobSpec): void {
  if (spec.parallelism === undefined) spec.completions ??= 1;
  spec.parallelism ??= 1;
  spec.backoffLimit ??= spec.backoffLimitPerIndex === undefined ? DEFAULT_BACKOFF_LIMIT : MAX_INT32;
  spec.completionMode ??= 'NonIndexed';
  spec.suspend ??= false;
  spec.podReplacementPolicy ??= spec.podFailurePolicy === undefined ? 'TerminatingOrFailed' : 'Failed';
  spec.manualSelector ??= false;
  defaultFailurePolicy(spec);
}

function defaultLabels({ metadata, spec }: Job): void {
  const labels = spec?.template?.metadata?.labels ?? {};
  if (Object.keys(metadata.labels ?? {}).length === 0 && Object.keys(labels).length > 0)
    metadata.labels = { ...labels };
}

const hasCondition = ({ status }: Job, type: string): boolean =>
  (status?.conditions ?? []).some((condition) => condition.type === type && condition.status === 'True');

function statusCell(job: Job): string {
  if (hasCondition(job, 'Complete')) return 'Complete';
  if (hasCondition(job, 'Failed')) return 'Failed';
  if (job.metadata.deletionTimestamp !== undefined) return 'Terminating';
  return ['Suspended', 'FailureTarget'].find((type) => hasCondition(job, type)) ?? 'Running';
}

function completionsCell({ spec, status }: Job): string {
  const succeeded = status?.succeeded ?? 0;
  if (spec?.completions !== undefined) return `${succeeded}/${spec.completions}`;
  const parallelism = spec?.parallelism ?? 0;
  return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`;
}

function durationCell({ status }: Job, { now }: WriteContext): string {
  const start = parseTime(status?.startTime);
  return start === undefined ? '' : humanDuration((parseTime(status?.completionTime) ?? now) - start);
}

export const jobKind = kind<Job>('batch/v1', 'Job', {
  categories: ['all'],
  defaults(job) {
    job.spec ??= { template: {} };
    job.spec.template ??= {};
    defaultTemplate(job.spec.template);
    defaultJobSpec(job.spec);
    defaultLabels(job);
  },
  status: { initial: () => ({}), rules: [onUpdate(validateJobStatus)] },
  prepareForCreate(job) {
    const template = job.spec?.template;
    const areDefault = sameValue(job.metadata.labels, template?.metadata?.labels);
    startGeneration(job);
    dropDisabledTemplateFields(template);
    generateSelector(job);
    if (areDefault) delete job.metadata.labels;
    defaultLabels(job);
  },
  prepareForUpdate(job, old) {
    dropDisabledTemplateFields(job.spec?.template, old.spec?.template);
    countGeneration(job, old, [job.spec, old.spec]);
  },
  rules: [validateJob, onUpdate(validateJobUpdate)],
  warnings: (job, old) =>
    job.metadata.generation === old?.metadata.generation
      ? []
      : [...(old === undefined ? nameWarnings(job) : []), ...specWarnings(job.spec ?? {}, old?.spec, 'spec')],
  propagation: { byDefault: 'Orphan', warning: PRESERVED },
  selectableFields: ({ status }) => ({ 'status.successful': String(status?.succeeded ?? 0) }),
  columns: [
    nameColumn,
    column('Status', 'The state of the Job.', statusCell),
    column('Completions', 'How many Pods have succeeded, and how many must.', completionsCell),
    column('Duration', 'The time from the start of the Job to its completion.', durationCell),
    ageColumn,
    column('Containers', 'The names of the app containers.', ({ spec }) => containersCell(spec?.template, 'name'), {
      wide: true,
    }),
    column('Images', 'The images of the app containers.', ({ spec }) => containersCell(spec?.template, 'image'), {
      wide: true,
    }),
    column('Selector', 'The labels of the Pods of the Job.', ({ spec }) => selectorCell(spec?.selector), {
      wide: true,
    }),
  ],
});
