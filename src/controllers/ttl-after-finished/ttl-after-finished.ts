/**
 * Deletes finished Jobs, with their Pods, when their ttlSecondsAfterFinished have passed.
 *
 * Reads: jobs (also a GET before a delete). Writes: jobs (delete, in the foreground).
 * Source: pkg/controller/ttlafterfinished of v1.33 (behavior).
 */
import type { Job } from '../../api/generated/types.ts';
import { JOBS } from '../../api/resources.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import { isApiError } from '../../machinery/status.ts';
import { type Millis, parseTime } from '../../machinery/time.ts';
import type { ControllerOptions } from '../controller.ts';
import { createWakes } from '../wakes.ts';

/** Resolves once the controller has read the Jobs. */
export async function startTtlAfterFinished({
  client,
  informers,
  timers,
  log,
  signal,
}: ControllerOptions): Promise<void> {
  const jobClient = client.resource<Job>(JOBS);
  const queue = createWorkQueue({ name: 'ttl_jobs_to_delete', process, log, timers, signal });
  const wakes = createWakes(timers, signal, queue.add);
  const follow = (job: Job): void => wakes.set(keyOf(job), expiresAt(job));
  const jobs = informers.follow<Job>(
    JOBS,
    { signal },
    { added: follow, updated: follow, deleted: (job) => wakes.cancel(keyOf(job)) },
  );

  async function process(key: string): Promise<void> {
    const [namespace, name] = key.split('/') as [string, string];
    try {
      // Read the Job from the API: the informer may not contain yet that a user has extended the time.
      const job = await jobClient.get(name, namespace);
      const { uid, resourceVersion } = job.metadata;
      if ((expiresAt(job) ?? Number.POSITIVE_INFINITY) > timers.now()) return;
      await jobClient.delete(name, namespace, {
        propagationPolicy: 'Foreground',
        preconditions: { uid, resourceVersion },
      });
    } catch (error) {
      if (!isApiError(error, 'NotFound')) throw error;
    }
  }

  await jobs.synced;
}

const keyOf = ({ metadata }: Job): string => `${metadata.namespace}/${metadata.name}`;

/** Returns when the Job must be deleted; undefined if it has not finished, has no TTL, or is already being deleted. */
export function expiresAt({ metadata, spec, status }: Job): Millis | undefined {
  const seconds = spec?.ttlSecondsAfterFinished;
  if (seconds === undefined || metadata.deletionTimestamp !== undefined) return undefined;
  const isLast = (type: string): boolean => type === 'Complete' || type === 'Failed';
  const end = (status?.conditions ?? []).find((each) => isLast(each.type) && each.status === 'True');
  const endedAt = parseTime(end?.lastTransitionTime);
  return endedAt === undefined ? undefined : endedAt + seconds * 1000;
}
