/**
 * Writes the decision of reconcile() about a CronJob to the API: first the status, then the deletions, then the new Job.
 * Source: pkg/controller/cronjob/cronjob_controllerv2.go of v1.33 (behavior and wording).
 */
import { isDeepStrictEqual } from 'node:util';
import type { CronJob, CronJobStatus, Job, ObjectReference } from '../../api/generated/types.ts';
import type { ResourceClient } from '../../client/client.ts';
import type { EventRecorder } from '../../client/events.ts';
import type { Informer } from '../../client/informer.ts';
import { unlessChanged } from '../../client/unless-changed.ts';
import { uidOf } from '../../machinery/meta.ts';
import { isApiError, isNamespaceTerminating } from '../../machinery/status.ts';
import { formatTime } from '../../machinery/time.ts';
import { isControlledBy } from '../ownership/owner.ts';
import { referenceTo } from './jobs.ts';
import { type Decision, type Start, withActive } from './reconcile.ts';

export interface CronJobWriter {
  cronJobClient: ResourceClient<CronJob>;
  jobClient: ResourceClient<Job>;
  cronJobs: Informer<CronJob>;
  jobs: Informer<Job>;
  events: EventRecorder;
}

/**
 * Resolves with true once the informers' caches contain the writes. Resolves with false, without any effect, if the CronJob was changed or
 * deleted meanwhile: the change causes the next decision. Rejects if the status or the new Job cannot be written, or a replaced Job cannot
 * be deleted. Other failed deletions are only reported as Events.
 */
export async function carryOut(writer: CronJobWriter, cronJob: CronJob, decision: Decision): Promise<boolean> {
  const { notes, status, remove, start } = decision;
  const known = await writeStatus(writer, cronJob, status);
  if (known === undefined) return false;
  for (const { type, reason, message } of notes) writer.events.event(known, type, reason, message);
  for (const job of remove) await removeJob(writer, known, job.metadata);
  if (start !== undefined) await carryOutStart(writer, known, start);
  return true;
}

async function carryOutStart(writer: CronJobWriter, cronJob: CronJob, start: Start): Promise<void> {
  const status = cronJob.status ?? {};
  const replaced = new Set(start.replaced.map(({ uid }) => uid));
  const active = (status.active ?? []).filter(({ uid }) => !replaced.has(uid));
  for (const job of start.replaced)
    if (!(await removeJob(writer, cronJob, job))) throw new Error(`could not replace job ${job.namespace}/${job.name}`);
  let job: Job | undefined;
  try {
    job = await createJob(writer, cronJob, start.job);
  } catch (error) {
    await writeStatus(writer, cronJob, withActive(status, active));
    throw error;
  }
  if (job === undefined) return;
  const lastScheduleTime = formatTime(start.scheduled);
  await writeStatus(writer, cronJob, { ...withActive(status, [...active, referenceTo(job)]), lastScheduleTime });
}

/**
 * Creates the Job. If the CronJob already has a Job with the name, resolves with that Job. Resolves with undefined if another owner's Job
 * has the name, or if the namespace is being deleted. Rejects with any other error; an error of the create is also reported as an Event.
 */
async function createJob(writer: CronJobWriter, cronJob: CronJob, job: Job): Promise<Job | undefined> {
  const { name, namespace } = job.metadata;
  try {
    const created = await writer.jobClient.create(job);
    writer.events.event(cronJob, 'Normal', 'SuccessfulCreate', `Created job ${name}`);
    await writer.jobs.reached(created.metadata.resourceVersion);
    return created;
  } catch (error) {
    if (isNamespaceTerminating(error)) return undefined;
    if (isApiError(error, 'AlreadyExists')) {
      // A create of a killed engine may take effect after the next engine has listed the Jobs.
      const existing = await writer.jobClient.get(name, namespace);
      await writer.jobs.reached(existing.metadata.resourceVersion);
      return isControlledBy(existing, cronJob) ? existing : undefined;
    }
    writer.events.event(cronJob, 'Warning', 'FailedCreate', `Error creating job: ${(error as Error).message}`);
    throw error;
  }
}

/**
 * Deletes the Job in the background, so that the garbage collector deletes its Pods. Resolves with false if the deletion failed. A missing
 * Job is success.
 */
async function removeJob(
  { jobClient, jobs, events }: CronJobWriter,
  cronJob: CronJob,
  { name = '', namespace, uid = '' }: Pick<ObjectReference, 'name' | 'namespace' | 'uid'>,
): Promise<boolean> {
  try {
    await unlessChanged(jobClient.delete(name, namespace, { propagationPolicy: 'Background', preconditions: { uid } }));
  } catch (error) {
    events.event(cronJob, 'Warning', 'FailedDelete', `Deleted job: ${(error as Error).message}`);
    return false;
  }
  events.event(cronJob, 'Normal', 'SuccessfulDelete', `Deleted job ${name}`);
  const copy = jobs.get(namespace, name);
  if (copy !== undefined && uidOf(copy) === uid) await jobs.gone(copy);
  return true;
}

async function writeStatus(
  { cronJobClient, cronJobs }: CronJobWriter,
  cronJob: CronJob,
  status: CronJobStatus,
): Promise<CronJob | undefined> {
  if (isDeepStrictEqual(cronJob.status ?? {}, status)) return cronJob;
  const written = await unlessChanged(cronJobClient.updateStatus({ ...cronJob, status }));
  await cronJobs.reached(written?.metadata.resourceVersion);
  return written;
}
