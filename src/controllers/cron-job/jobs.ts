/**
 * Determines the names, content and states of the Jobs of a CronJob. The functions are pure.
 * Source: pkg/controller/cronjob/utils.go of v1.33 (behavior).
 */
import type { CronJob, Job, JobCondition, ObjectReference } from '../../api/generated/types.ts';
import { CRON_JOBS } from '../../api/resources.ts';
import { uidOf } from '../../machinery/meta.ts';
import { type Millis, parseTime } from '../../machinery/time.ts';
import { controllerReference, type OwnerKind } from '../ownership/owner.ts';
import { formatLocalTime } from './local-time.ts';

export const CRON_JOB: OwnerKind = { apiVersion: 'batch/v1', kind: 'CronJob', resource: CRON_JOBS };
export const SCHEDULED = 'batch.kubernetes.io/cronjob-scheduled-timestamp';

const MINUTE: Millis = 60_000;
const ENDS: readonly string[] = ['Complete', 'Failed'];

/** The names of Jobs that are scheduled in the same minute are equal, so that only one of these Jobs is created. */
export const jobName = ({ metadata }: CronJob, scheduled: Millis): string =>
  `${metadata.name}-${Math.floor(scheduled / MINUTE)}`;

export function jobOf(cronJob: CronJob, scheduled: Millis): Job {
  const { metadata, spec } = cronJob.spec?.jobTemplate ?? {};
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name: jobName(cronJob, scheduled),
      namespace: cronJob.metadata.namespace ?? 'default',
      labels: { ...metadata?.labels },
      annotations: {
        ...metadata?.annotations,
        [SCHEDULED]: formatLocalTime(cronJob.spec?.timeZone ?? 'UTC', scheduled),
      },
      ownerReferences: [controllerReference(cronJob, CRON_JOB)],
    },
    ...(spec === undefined ? {} : { spec: structuredClone(spec) }),
  };
}

/** Returns the time for which the controller created the Job; undefined if a user created the Job from the CronJob. */
export function scheduledTimeOf(job: Job, cronJob: CronJob): Millis | undefined {
  const scheduled = parseTime(job.metadata.annotations?.[SCHEDULED]);
  return scheduled !== undefined && job.metadata.name === jobName(cronJob, scheduled) ? scheduled : undefined;
}

/** Returns the condition Complete or Failed that is True; undefined if the Job has not finished. */
export const endOf = ({ status }: Job): JobCondition | undefined =>
  status?.conditions?.find(({ type, status: value }) => ENDS.includes(type) && value === 'True');

export function referenceTo({ apiVersion, kind, metadata }: Job): ObjectReference {
  const { name, namespace, resourceVersion } = metadata;
  return { apiVersion, kind, name, namespace, uid: uidOf({ metadata } as Job), resourceVersion };
}

/** Returns the finished Jobs that exceed a history limit: the successful ones, then the failed ones, each the oldest first. */
export function exceedingJobs({ spec }: CronJob, jobs: readonly Job[]): Job[] {
  const kept = jobs.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const exceeding = (end: string, limit: number | undefined): Job[] => {
    if (limit === undefined) return [];
    const finished = kept.filter((job) => endOf(job)?.type === end).sort(byStart);
    return finished.slice(0, Math.max(0, finished.length - limit));
  };
  return [
    ...exceeding('Complete', spec?.successfulJobsHistoryLimit),
    ...exceeding('Failed', spec?.failedJobsHistoryLimit),
  ];
}

/** Sort order: by start time, then by name. Jobs that have not started come last. */
function byStart(a: Job, b: Job): number {
  const [first, second] = [a, b].map(({ status }) => parseTime(status?.startTime) ?? Number.MAX_SAFE_INTEGER);
  return (first ?? 0) - (second ?? 0) || (a.metadata.name < b.metadata.name ? -1 : 1);
}
