/** Writes decisions about Jobs to the API. Source: pkg/controller/job/job_controller.go of v1.33 (behavior). */

import { isDeepStrictEqual } from 'node:util';
import type { Job, JobStatus, Pod } from '../../api/generated/types.ts';
import type { ResourceClient } from '../../client/client.ts';
import type { Informer } from '../../client/informer.ts';
import { unlessChanged } from '../../client/unless-changed.ts';
import { isNamespaceTerminating } from '../../machinery/status.ts';
import { unmarkPod } from '../ownership/deletion-mark.ts';
import { createPod, deletePod, type PodWriter, slowStart } from '../ownership/pods-of-owner.ts';
import { trackPod, untrackPod } from './finalizers.ts';
import { isEndingByItself, podFor } from './job-pods.ts';
import type { Decision } from './reconcile.ts';

export interface JobWriter extends PodWriter {
  jobClient: ResourceClient<Job>;
  podClient: ResourceClient<Pod>;
  jobs: Informer<Job>;
  pods: Informer<Pod>;
}

/**
 * Creates and deletes Pods, writes the status, and removes the finalizers of the Pods in `untrack`. Resolves with true once the informers'
 * caches contain the writes, or with false if a concurrent change of the Job or a Pod causes another decision. Rejects with the first
 * error. Pods that cannot be created do not prevent the status from being written.
 */
export async function carryOut(writer: JobWriter, job: Job, decision: Decision): Promise<boolean> {
  await Promise.all(decision.unmark.map((pod) => unmarkPod(writer, pod)));
  if ((await unlessChanged(changePods(writer, job, decision))) === undefined) return false;
  const { missing, error } = await create(writer, job, decision);
  const isWritten = await writeStatus(writer, job, reduced(decision.status, missing));
  if (isWritten) {
    for (const { type, reason, message } of decision.events) writer.events.event(job, type, reason, message);
    const untracked = decision.untrack.map((pod) => untrackPod(writer.podClient, pod, false));
    await seen(writer, await allDone(untracked));
  }
  if (error !== undefined) throw error;
  return isWritten;
}

async function changePods(writer: JobWriter, job: Job, { retrack, remove, reason }: Decision): Promise<true> {
  await seen(writer, await allDone(retrack.map((pod) => trackPod(writer.podClient, pod))));
  await allDone(remove.map((pod) => removePod(writer, job, pod, reason)));
  return true;
}

/**
 * Deletes an active Pod. A surplus Pod loses its finalizer first, so that the Job does not count it. The removal of the finalizer conflicts
 * if the Pod has changed, because the Pod may have ended and must then be counted. A Pod that ends by itself keeps the finalizer, because
 * its work is done.
 */
async function removePod(writer: JobWriter, job: Job, pod: Pod, reason: Decision['reason']): Promise<void> {
  if (reason === 'ScaledDown' && !isEndingByItself(pod)) await untrackPod(writer.podClient, pod, true);
  await deletePod(writer, job, pod, reason);
  await writer.pods.gone(pod);
}

async function create(writer: JobWriter, job: Job, decision: Decision): Promise<{ missing: number; error?: unknown }> {
  const created: Pod[] = [];
  const { error } = await slowStart(decision.create.length, async (index) => {
    try {
      created.push(await createPod(writer, job, podFor(job, decision.create[index] ?? {})));
    } catch (failure) {
      // The namespace is being deleted: every create would fail, and the Job is about to be deleted.
      if (!isNamespaceTerminating(failure)) throw failure;
    }
  });
  await seen(writer, created);
  return { missing: decision.create.length - created.length, error };
}

/** Subtracts the Pods that could not be created, and omits empty fields as upstream does. */
function reduced(status: JobStatus, missing: number): JobStatus {
  const { active = 0, succeeded = 0, failed = 0, completedIndexes = '', conditions = [], ...others } = status;
  return {
    ...others,
    ...(active - missing > 0 ? { active: active - missing } : {}),
    ...(succeeded > 0 ? { succeeded } : {}),
    ...(failed > 0 ? { failed } : {}),
    ...(completedIndexes === '' ? {} : { completedIndexes }),
    ...(conditions.length > 0 ? { conditions } : {}),
  };
}

async function writeStatus({ jobClient, jobs }: JobWriter, job: Job, status: JobStatus): Promise<boolean> {
  if (isDeepStrictEqual(job.status ?? {}, status)) return true;
  const written = await unlessChanged(jobClient.updateStatus({ ...job, status }));
  await jobs.reached(written?.metadata.resourceVersion);
  return written !== undefined;
}

const seen = async ({ pods }: JobWriter, changed: readonly (Pod | undefined)[]): Promise<void> => {
  await Promise.all(changed.map((pod) => pods.reached(pod?.metadata.resourceVersion)));
};

/** Like Promise.all(), but waits for all writes before it rejects. */
async function allDone<T>(writes: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(writes);
  return Promise.all(writes);
}
