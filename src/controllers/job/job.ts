/**
 * Runs Pods until enough of them have succeeded, and counts each Pod exactly once.
 *
 * Reads: jobs (also a GET before an adoption, and for Pods whose Job is not in the informer's cache), pods.
 * Writes: pods (create, delete; ownerReferences; the finalizer batch.kubernetes.io/job-tracking; the condition DeletionReason), the status
 * of jobs, events.
 * Invariants:
 *  1. A Job's next reconcile sees the writes of the previous one that must not be repeated, because a reconcile ends only when the
 *     informers' caches contain its writes.
 *  2. A Pod with the finalizer is not counted yet. tracking.ts explains how each Pod is counted once.
 *  3. A Job that is being deleted creates and adopts nothing, and deletes Pods only if it also ends. A Job that has ended, or that another
 *     controller manages, is ignored.
 * A crash loses the part of the back-off that comes from Pods that no longer exist.
 * Source: pkg/controller/job of v1.33 (behavior and wording).
 */
import type { Job, Pod } from '../../api/generated/types.ts';
import { JOBS, PODS } from '../../api/resources.ts';
import { createEventRecorder } from '../../client/events.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import { uidOf } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import type { ControllerOptions } from '../controller.ts';
import { claim } from '../ownership/claim.ts';
import { executeClaim } from '../ownership/claiming.ts';
import { keyOf } from '../ownership/dependent-handlers.ts';
import { controllerUids, orphanKey } from '../ownership/owner.ts';
import { createWakes } from '../wakes.ts';
import type { BackOff } from './back-off.ts';
import { carryOut, type JobWriter } from './carry-out.ts';
import { isFinished } from './conditions.ts';
import { isManagedElsewhere, releaseOrphan } from './finalizers.ts';
import { followJobs } from './follow-jobs.ts';
import { FINALIZER, JOB } from './job-pods.ts';
import { reconcile } from './reconcile.ts';

/**
 * Resolves once the controller has read the objects that it follows. While `noMorePods` is active, the controller still counts Pods that
 * end.
 */
export async function startJobs(options: ControllerOptions): Promise<void> {
  const { client, timers, log, signal, noMorePods } = options;
  const jobClient = client.resource<Job>(JOBS);
  const podClient = client.resource<Pod>(PODS);
  const events = createEventRecorder(client, { component: 'job-controller', timers, log, signal });
  const queue = createWorkQueue({ name: 'job', process, log, timers, signal });
  const orphans = createWorkQueue({ name: 'job_orphan_pod', process: release, log, timers, signal });
  const wakes = createWakes(timers, signal, queue.add);
  const backOffs = new Map<string, BackOff>();
  const { jobs, pods } = followJobs(options, {
    changed: queue.add,
    orphaned: orphans.add,
    deleted(job) {
      wakes.cancel(`${job.metadata.namespace}/${job.metadata.name}`);
      backOffs.delete(uidOf(job));
    },
  });
  const writer: JobWriter = { client, events, now: timers.now, jobClient, podClient, jobs, pods };
  const synced = Promise.all([jobs.synced, pods.synced]);

  async function process(key: string): Promise<void> {
    await synced;
    const [namespace, name] = key.split('/') as [string, string];
    const job = jobs.get(namespace, name);
    if (job === undefined || isManagedElsewhere(job)) return;
    if (isFinished(job)) {
      wakes.cancel(key);
      backOffs.delete(uidOf(job));
      return;
    }
    const decision = reconcile({
      job,
      pods: await claimed(writer, job),
      backOff: backOffs.get(uidOf(job)),
      mayCreate: noMorePods?.isActive() !== true,
      now: timers.now(),
    });
    const isDone = await carryOut(writer, job, decision);
    if (isDone && jobs.get(namespace, name)?.metadata.uid === job.metadata.uid)
      backOffs.set(uidOf(job), decision.backOff);
    wakes.set(key, decision.checkAt);
  }

  async function release(key: string): Promise<void> {
    await synced;
    const [namespace, name] = key.split('/') as [string, string];
    const pod = pods.get(namespace, name);
    if (pod !== undefined) await releaseOrphan(podClient, pod, currentJob(writer));
  }

  noMorePods?.onEnd(() => {
    for (const job of jobs.list()) queue.add(keyOf(job));
  });
  await synced;
}

async function claimed({ jobClient, podClient, pods }: JobWriter, job: Job): Promise<Pod[]> {
  const { namespace, name } = job.metadata;
  const candidates = [...pods.by(controllerUids, uidOf(job)), ...pods.by(controllerUids, orphanKey(namespace))];
  const claimant = { owner: job, kind: JOB, fresh: () => jobClient.get(name, namespace), finalizer: FINALIZER };
  const owned = await executeClaim(podClient, claimant, claim(job, job.spec?.selector, candidates));
  await Promise.all(owned.map(({ metadata }) => pods.reached(metadata.resourceVersion)));
  return owned;
}

/**
 * Returns a function that finds a Job by its UID, in the API if the informer's cache does not contain the Job. The function resolves with
 * undefined if the Job does not exist.
 */
const currentJob =
  ({ jobs, jobClient }: JobWriter) =>
  async (namespace: string, name: string, uid: string): Promise<Job | undefined> => {
    const known = jobs.get(namespace, name);
    if (known?.metadata.uid === uid) return known;
    try {
      const job = await jobClient.get(name, namespace);
      return job.metadata.uid === uid ? job : undefined;
    } catch (error) {
      if (isApiError(error, 'NotFound')) return undefined;
      throw error;
    }
  };
