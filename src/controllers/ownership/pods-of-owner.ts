/**
 * Creates and deletes the Pods of workloads, and reports both as Events of the owner.
 * Source: RealPodControl of pkg/controller/controller_utils.go of v1.33 (behavior, reasons and wording).
 */
import type { Pod, PodCondition, PodTemplateSpec } from '../../api/generated/types.ts';
import { PODS } from '../../api/resources.ts';
import type { Client } from '../../client/client.ts';
import type { EventRecorder } from '../../client/events.ts';
import { deleteWithStatus } from '../../client/unless-changed.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { dns1123SubdomainErrors } from '../../machinery/names.ts';
import { isNamespaceTerminating } from '../../machinery/status.ts';
import { formatTime, type Millis } from '../../machinery/time.ts';
import { controllerReference, type OwnerKind } from './owner.ts';

/**
 * The reasons for which workload controllers delete Pods, for the condition DeletionReason. Source: the specification of defer containers,
 * "Workloads".
 */
export type DeletionReason = 'ScaledDown' | 'Replaced' | 'Completed' | 'DeadlineExceeded';

export interface PodWriter {
  client: Client;
  events: EventRecorder;
  now: () => Millis;
}

/** Returns a new Pod that the owner controls and to which the API gives a generated name. */
export function podFromTemplate(template: PodTemplateSpec | undefined, owner: KubeObject, kind: OwnerKind): Pod {
  const { labels, annotations, finalizers } = template?.metadata ?? {};
  const prefix = `${owner.metadata.name}-`;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: '',
      generateName: dns1123SubdomainErrors(`${prefix}x`).length === 0 ? prefix : owner.metadata.name,
      namespace: owner.metadata.namespace ?? 'default',
      labels: { ...labels },
      ...(annotations === undefined || Object.keys(annotations).length === 0
        ? {}
        : { annotations: { ...annotations } }),
      ownerReferences: [controllerReference(owner, kind)],
      ...(finalizers === undefined ? {} : { finalizers: [...finalizers] }),
    },
    spec: structuredClone(template?.spec ?? { containers: [] }),
  };
}

/**
 * Creates the Pod, and reports the result as an Event of the owner, except a failure because the namespace is being deleted. Rejects with
 * the error of a failed create.
 */
export async function createPod({ client, events }: PodWriter, owner: KubeObject, pod: Pod): Promise<Pod> {
  try {
    const created = await client.resource<Pod>(PODS).create(pod);
    events.event(owner, 'Normal', 'SuccessfulCreate', `Created pod: ${created.metadata.name}`);
    return created;
  } catch (error) {
    // The API rejects every create in a namespace that is being deleted, and the owner is about to be deleted too.
    if (!isNamespaceTerminating(error))
      events.event(owner, 'Warning', 'FailedCreate', `Error creating: ${(error as Error).message}`);
    throw error;
  }
}

/**
 * Deletes the Pod unless it has been replaced, and reports the result as an Event. NotFound is success. Rejects with the error of a failed
 * delete.
 */
export async function deletePod(writer: PodWriter, owner: KubeObject, pod: Pod, reason: DeletionReason): Promise<void> {
  try {
    if (await deleteWithReason(writer, pod, reason))
      writer.events.event(owner, 'Normal', 'SuccessfulDelete', `Deleted pod: ${pod.metadata.name}`);
  } catch (error) {
    writer.events.event(owner, 'Warning', 'FailedDelete', `Error deleting: ${(error as Error).message}`);
    throw error;
  }
}

/**
 * Deletes the Pod unless it has been replaced. A Pod with defer containers first gets the condition DeletionReason. Resolves with false if
 * the Pod has already been deleted or replaced. Rejects with the error of a failed delete.
 */
export async function deleteWithReason(
  { client, now }: Pick<PodWriter, 'client' | 'now'>,
  pod: Pod,
  reason: DeletionReason,
): Promise<boolean> {
  const isAnnounced = (pod.spec?.deferContainers ?? []).length > 0;
  const status = isAnnounced ? { conditions: [deletionReason(reason, now())] } : undefined;
  return deleteWithStatus(client.resource<Pod>(PODS), pod, status);
}

const deletionReason = (reason: DeletionReason, now: Millis): PodCondition => ({
  type: 'DeletionReason',
  status: 'True',
  reason,
  message: 'deleted by the controller of the workload',
  lastTransitionTime: formatTime(now),
});

/**
 * Calls `act` with 0 to `count - 1`, concurrently in batches of 1, 2, 4 and so on. Stops after a batch with a failure, so that an API that
 * rejects the Pods gets few requests. Resolves with the number of successful calls and the first error.
 */
export async function slowStart(
  count: number,
  act: (index: number) => Promise<unknown>,
): Promise<{ succeeded: number; error?: unknown }> {
  let succeeded = 0;
  for (let begun = 0, size = 1; begun < count; size *= 2) {
    const batch = Array.from({ length: Math.min(size, count - begun) }, (_, index) => act(begun + index));
    begun += batch.length;
    const results = await Promise.allSettled(batch);
    succeeded += results.filter(({ status }) => status === 'fulfilled').length;
    const failed = results.find((result) => result.status === 'rejected');
    if (failed !== undefined) return { succeeded, error: failed.reason };
  }
  return { succeeded };
}
