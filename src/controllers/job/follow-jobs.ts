/** Follows Jobs and their Pods, and reports which Jobs and orphaned Pods must be processed. */
import type { Job, Pod } from '../../api/generated/types.ts';
import { JOBS, PODS } from '../../api/resources.ts';
import type { Informer } from '../../client/informer.ts';
import { uidOf } from '../../machinery/meta.ts';
import type { ControllerOptions } from '../controller.ts';
import { dependentHandlers, keyOf } from '../ownership/dependent-handlers.ts';
import { controllerOf, controllerUids } from '../ownership/owner.ts';
import { isFinished } from './conditions.ts';
import { isTracked } from './job-pods.ts';

export interface Followed {
  jobs: Informer<Job>;
  pods: Informer<Pod>;
}

export interface JobHandlers {
  /** Called with the key of a Job that must be reconciled: its namespace, `/` and its name. */
  changed(key: string): void;
  deleted(job: Job): void;
  /** Called with the key of a Pod that has the finalizer of a Job, but no Job that will count the Pod. */
  orphaned(key: string): void;
}

export function followJobs(
  { informers, signal }: Pick<ControllerOptions, 'informers' | 'signal'>,
  { changed, deleted, orphaned }: JobHandlers,
): Followed {
  const leavePods = (job: Job): void => {
    for (const pod of pods.by(controllerUids, uidOf(job))) if (isTracked(pod)) orphaned(keyOf(pod));
  };
  const jobs = informers.follow<Job>(
    JOBS,
    { signal },
    {
      added: (job) => changed(keyOf(job)),
      updated(job) {
        changed(keyOf(job));
        if (isFinished(job)) leavePods(job);
      },
      deleted(job) {
        deleted(job);
        leavePods(job);
      },
    },
  );
  const leaveOrphan = (pod: Pod): void => {
    const controller = controllerOf(pod);
    if (!isTracked(pod) || (controller !== undefined && controller.kind !== 'Job')) return;
    const job = controller === undefined ? undefined : jobs.get(pod.metadata.namespace, controller.name);
    if (job === undefined || uidOf(job) !== controller?.uid || isFinished(job)) orphaned(keyOf(pod));
  };
  const owners = dependentHandlers<Job>({
    kind: 'Job',
    owners: jobs,
    selectorOf: ({ spec }) => spec?.selector,
    changed,
  });
  const pods: Informer<Pod> = informers.follow<Pod>(
    PODS,
    { signal },
    {
      added(pod) {
        owners.added(pod);
        leaveOrphan(pod);
      },
      updated(pod, old) {
        owners.updated(pod, old);
        leaveOrphan(pod);
      },
      deleted: owners.deleted,
    },
  );
  return { jobs, pods };
}
