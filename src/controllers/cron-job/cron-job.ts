/**
 * Creates the Jobs of each CronJob at the times of its schedule, and deletes finished Jobs that exceed the limits of its history.
 *
 * Reads: cronjobs, jobs (also a GET before a Job counts as missing).
 * Writes: jobs (create, delete), the status of cronjobs, events.
 * Invariants:
 *  1. A scheduled time gets at most one Job: the name of the Job contains the time, and the controller deletes a Job only after the status
 *     contains its time.
 *  2. No timer is set except for the next time of each schedule.
 *  3. The work for a schedule is bounded, however rare or frequent its times are, and however long no engine ran.
 * Source: pkg/controller/cronjob of v1.33 (behavior and wording).
 */
import type { CronJob, Job, ObjectReference } from '../../api/generated/types.ts';
import { CRON_JOBS, JOBS } from '../../api/resources.ts';
import type { ResourceClient } from '../../client/client.ts';
import { createEventRecorder } from '../../client/events.ts';
import type { InformerHandlers } from '../../client/local-copy.ts';
import { unlessChanged } from '../../client/unless-changed.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import { uidOf } from '../../machinery/meta.ts';
import type { Millis } from '../../machinery/time.ts';
import type { ControllerOptions } from '../controller.ts';
import { dependentHandlers, keyOf } from '../ownership/dependent-handlers.ts';
import { controllerUids } from '../ownership/owner.ts';
import { createWakes } from '../wakes.ts';
import { type CronJobWriter, carryOut } from './carry-out.ts';
import { nextStart, reconcile } from './reconcile.ts';

export interface CronJobOptions extends ControllerOptions {
  /** The time zone of schedules without one. Default: the time zone of the machine. */
  localZone?: string;
}

/** Resolves once the controller has read the CronJobs and the Jobs. */
export async function startCronJobs(options: CronJobOptions): Promise<void> {
  const { client, informers, timers, log, signal, noMorePods } = options;
  const localZone = options.localZone ?? new Intl.DateTimeFormat().resolvedOptions().timeZone;
  const queue = createWorkQueue({ name: 'cronjob', process, log, timers, signal, pause: noMorePods });
  const wakes = createWakes(timers, signal, queue.add);
  /** By UID of a CronJob: the latest scheduled time for which an Event MissSchedule was sent. */
  const reported = new Map<string, Millis>();
  const cronJobs = informers.follow<CronJob>(CRON_JOBS, { signal }, cronJobHandlers());
  const owners = { kind: 'CronJob', owners: cronJobs, selectorOf: () => undefined, changed: queue.add };
  const jobs = informers.follow<Job>(JOBS, { signal }, dependentHandlers(owners));
  const writer: CronJobWriter = {
    cronJobClient: client.resource<CronJob>(CRON_JOBS),
    jobClient: client.resource<Job>(JOBS),
    cronJobs,
    jobs,
    events: createEventRecorder(client, { component: 'cronjob-controller', timers, log, signal }),
  };
  const synced = Promise.all([cronJobs.synced, jobs.synced]);

  function cronJobHandlers(): Required<InformerHandlers<CronJob>> {
    return {
      added: (cronJob) => queue.add(keyOf(cronJob)),
      updated(cronJob, old) {
        // A new schedule has no missed times: only its times from now on count.
        const isSame = cronJob.spec?.schedule === old.spec?.schedule && cronJob.spec?.timeZone === old.spec?.timeZone;
        if (isSame) queue.add(keyOf(cronJob));
        else setWake(cronJob);
      },
      deleted(cronJob) {
        wakes.cancel(keyOf(cronJob));
        reported.delete(uidOf(cronJob));
      },
    };
  }

  const setWake = (cronJob: CronJob): void => wakes.set(keyOf(cronJob), nextStart(cronJob, timers.now(), localZone));

  async function process(key: string): Promise<void> {
    await synced;
    const [namespace, name] = key.split('/') as [string, string];
    const cronJob = cronJobs.get(namespace, name);
    if (cronJob === undefined) return;
    const uid = uidOf(cronJob);
    const owned = [...jobs.by(controllerUids, uid)];
    const missing = await missingJobs(writer.jobClient, cronJob, owned);
    const isMissing = (job: ObjectReference): boolean => missing.has(job.uid);
    const now = timers.now();
    const decision = reconcile({ cronJob, jobs: owned, isMissing, now, localZone, reported: reported.get(uid) });
    const isDone = await carryOut(writer, cronJob, decision);
    if (isDone && decision.missed !== undefined) reported.set(uid, decision.missed);
    // Read the CronJob again, because its schedule may have changed meanwhile.
    const current = cronJobs.get(namespace, name);
    if (current !== undefined) setWake(current);
  }

  await synced;
}

/** Resolves with the UIDs of active Jobs that no longer exist in the API. `owned`: Jobs that exist, according to the informer. */
async function missingJobs(
  jobClient: ResourceClient<Job>,
  { status }: CronJob,
  owned: readonly Job[],
): Promise<Set<string | undefined>> {
  const existing = new Set<string | undefined>(owned.map(uidOf));
  const missing = new Set<string | undefined>();
  for (const { name = '', namespace, uid } of status?.active ?? []) {
    if (existing.has(uid)) continue;
    const found = await unlessChanged(jobClient.get(name, namespace));
    if (found === undefined || uidOf(found) !== uid) missing.add(uid);
  }
  return missing;
}
