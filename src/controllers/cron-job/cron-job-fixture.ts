import type {
  CronJob,
  CronJobSpec,
  CronJobStatus,
  Job,
  JobStatus,
  ObjectReference,
} from '../../api/generated/types.ts';
import type { ObjectMeta } from '../../machinery/meta.ts';
import { formatTime, type Millis } from '../../machinery/time.ts';
import { controllerReference } from '../ownership/owner.ts';
import { CRON_JOB, jobOf } from './jobs.ts';

export const NOW: Millis = Date.UTC(2026, 0, 31, 12);
export const MINUTE: Millis = 60_000;

export const spec = (changes: Partial<CronJobSpec> = {}): CronJobSpec => ({
  schedule: '* * * * *',
  concurrencyPolicy: 'Allow',
  jobTemplate: {
    metadata: { name: '', labels: { app: 'tick' }, annotations: { note: 'x' } },
    spec: { template: { spec: { containers: [{ name: 'app', image: 'x' }], restartPolicy: 'Never' } } },
  },
  ...changes,
});

export const cronJob = (
  changes: Partial<CronJobSpec> = {},
  status: CronJobStatus = {},
  metadata: Partial<ObjectMeta> = {},
): CronJob => ({
  apiVersion: 'batch/v1',
  kind: 'CronJob',
  metadata: { name: 'tick', namespace: 'a', uid: 'tick', creationTimestamp: formatTime(NOW), ...metadata },
  spec: spec(changes),
  status,
});

export function finished(type: 'Complete' | 'Failed', started: Millis): JobStatus {
  const end = formatTime(started + 1000);
  const types = [type === 'Complete' ? 'SuccessCriteriaMet' : 'FailureTarget', type];
  return {
    startTime: formatTime(started),
    ...(type === 'Complete' ? { completionTime: end } : {}),
    conditions: types.map((each) => ({ type: each, status: 'True', lastTransitionTime: end })),
  };
}

/** Returns the Job that the controller creates for `scheduled`. Its UID is its name. */
export function scheduledJob(scheduled: Millis, status: JobStatus = {}): Job {
  const job = jobOf(cronJob(), scheduled);
  return { ...job, metadata: { ...job.metadata, uid: job.metadata.name }, status };
}

/** Returns the Job that `kubectl create job NAME --from=cronjob/tick` creates. Its UID is its name. */
export const manualJob = (name: string, status: JobStatus = {}): Job => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: {
    name,
    namespace: 'a',
    uid: name,
    annotations: { 'cronjob.kubernetes.io/instantiate': 'manual' },
    ownerReferences: [controllerReference(cronJob(), CRON_JOB)],
  },
  ...(spec().jobTemplate.spec === undefined ? {} : { spec: spec().jobTemplate.spec }),
  status,
});

export const active = (...jobs: Job[]): ObjectReference[] =>
  jobs.map(({ metadata: { name, namespace, uid } }) => ({ apiVersion: 'batch/v1', kind: 'Job', name, namespace, uid }));
