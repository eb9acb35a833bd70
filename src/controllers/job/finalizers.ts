/** Adds and removes the finalizer by which a Job tracks its Pods. */
import type { Job, Pod } from '../../api/generated/types.ts';
import type { ResourceClient } from '../../client/client.ts';
import { unlessChanged } from '../../client/unless-changed.ts';
import { uidOf } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import { controllerOf } from '../ownership/owner.ts';
import { isFinished } from './conditions.ts';
import { FINALIZER, isTracked, JOB } from './job-pods.ts';

const MERGE = 'application/strategic-merge-patch+json';
/** The value of spec.managedBy with which this controller manages the Job. */
const OWN_NAME = 'kubernetes.io/job-controller';

export const isManagedElsewhere = ({ spec }: Job): boolean => (spec?.managedBy ?? OWN_NAME) !== OWN_NAME;

/**
 * Removes the finalizer. Resolves with the new Pod; undefined if the Pod no longer exists. With `onlyIfUnchanged`, rejects with 409
 * Conflict if the Pod has changed since it was read.
 */
export const untrackPod = (pods: ResourceClient<Pod>, pod: Pod, onlyIfUnchanged: boolean): Promise<Pod | undefined> =>
  patched(pods, pod, { '$deleteFromPrimitiveList/finalizers': [FINALIZER] }, onlyIfUnchanged);

/**
 * Adds the finalizer. Resolves with the new Pod; undefined if the Pod no longer exists. Rejects with 409 Conflict if the Pod has changed
 * since it was read.
 */
export const trackPod = (pods: ResourceClient<Pod>, pod: Pod): Promise<Pod | undefined> =>
  patched(pods, pod, { finalizers: [FINALIZER] }, true);

async function patched(
  pods: ResourceClient<Pod>,
  pod: Pod,
  change: object,
  onlyIfUnchanged: boolean,
): Promise<Pod | undefined> {
  const { name, namespace, resourceVersion } = pod.metadata;
  const version = onlyIfUnchanged ? { resourceVersion } : {};
  const write = pods.patch(name, namespace, MERGE, { metadata: { uid: uidOf(pod), ...version, ...change } });
  // Without a resourceVersion, a conflict means that another Pod has the name.
  if (!onlyIfUnchanged) return unlessChanged(write);
  try {
    return await write;
  } catch (error) {
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  }
}

/**
 * Removes the finalizer of a Pod that no Job will count: its Job has ended or no longer exists, or the Pod has no controller. `jobOf`
 * resolves with undefined if no Job has the UID.
 */
export async function releaseOrphan(
  pods: ResourceClient<Pod>,
  pod: Pod,
  jobOf: (namespace: string, name: string, uid: string) => Promise<Job | undefined>,
): Promise<void> {
  if (!isTracked(pod)) return;
  const controller = controllerOf(pod);
  if (controller !== undefined) {
    if (controller.kind !== JOB.kind || controller.apiVersion !== JOB.apiVersion) return;
    const job = await jobOf(pod.metadata.namespace ?? '', controller.name, controller.uid);
    if (job !== undefined && (isManagedElsewhere(job) || !isFinished(job))) return;
  }
  // After a conflict, the change of the Pod causes another attempt.
  await unlessChanged(untrackPod(pods, pod, true));
}
