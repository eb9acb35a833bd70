/**
 * Deletes Pods whose node no longer exists, because no agent can terminate them. If there are too many terminated Pods,
 * deletes evicted ones first, then the oldest.
 *
 * Reads: nodes, pods. Writes: pods (delete, without a grace period).
 * Source: "Pod garbage collection" of the v1.33 documentation; upstream's podgc (order; 40 s in which a node may return).
 */

import { isMirrorPod } from '../../api/core/v1/pod/mirror.ts';
import { hasEnded } from '../../api/core/v1/pod/status/final-phase.ts';
import type { Node, Pod } from '../../api/generated/types.ts';
import { NODES, PODS } from '../../api/resources.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import { uidOf } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import { onAbort } from '../../platform/on-abort.ts';
import type { Timer } from '../../platform/platform.ts';
import { type ControllerOptions, nodeNamesOf } from '../controller.ts';

/** The time in which a missing node may return before its Pods are deleted. */
const QUARANTINE_MILLIS = 40 * 1000;
/** The default of upstream's --terminated-pod-gc-threshold. */
export const DEFAULT_TERMINATED_PODS = 12_500;
/** The queue's key for the collection of terminated Pods. All other keys are node names. */
const TERMINATED = '';

/** Starts the controller. `terminatedPods` is how many terminated Pods are kept, by default DEFAULT_TERMINATED_PODS; 0 means all. */
export async function startPodGc(options: ControllerOptions & { terminatedPods?: number }): Promise<void> {
  const { client, informers, timers, log, signal, terminatedPods = DEFAULT_TERMINATED_PODS } = options;
  const podClient = client.resource<Pod>(PODS);
  const queue = createWorkQueue({ name: 'pod-gc', process: collect, log, timers, signal });
  /** UIDs of the terminated Pods. */
  const terminated = new Set<string>();
  /** By name of a missing node: the timer that queues the node, so that its Pods are deleted if it is still missing. */
  const quarantines = new Map<string, Timer>();
  onAbort(signal, () => {
    for (const timer of quarantines.values()) timer.cancel();
  });

  const nodes = informers.follow<Node>(NODES, { signal }, { deleted: ({ metadata }) => suspect(metadata.name) });
  await nodes.synced;
  const pods = informers.follow<Pod>(
    PODS,
    { signal },
    { added: seen, updated: seen, deleted: ({ metadata: { uid = '' } }) => void terminated.delete(uid) },
  );
  await pods.synced;

  function seen(pod: Pod): void {
    suspect(pod.spec?.nodeName);
    const uid = uidOf(pod);
    if (isTerminated(pod)) terminated.add(uid);
    else terminated.delete(uid);
    if (terminatedPods > 0 && terminated.size > terminatedPods) queue.add(TERMINATED);
  }

  function suspect(node: string | undefined): void {
    if (!node || nodes.get(undefined, node) !== undefined || quarantines.has(node)) return;
    const collectLater = (): void => {
      quarantines.delete(node);
      queue.add(node);
    };
    quarantines.set(node, timers.at(timers.now() + QUARANTINE_MILLIS, collectLater));
  }

  async function collect(node: string): Promise<void> {
    if (node === TERMINATED) return collectTerminated();
    if (nodes.get(undefined, node) !== undefined) return;
    for (const pod of [...pods.by(nodeNamesOf, node)]) await remove(pod, 'its node no longer exists');
  }

  async function collectTerminated(): Promise<void> {
    const ended = pods.list().filter(isTerminated).sort(evictedFirst);
    const tooMany = ended.slice(0, Math.max(0, ended.length - terminatedPods));
    for (const pod of tooMany) await remove(pod, 'too many terminated Pods');
  }

  async function remove({ metadata, spec }: Pod, why: string): Promise<void> {
    const { name, namespace, uid } = metadata;
    log.info('pod-gc: deleting a Pod', { pod: `${namespace}/${name}`, why, node: spec?.nodeName });
    try {
      await podClient.delete(name, namespace, { gracePeriodSeconds: 0, preconditions: { uid } });
    } catch (error) {
      if (!isApiError(error, 'NotFound') && !isApiError(error, 'Conflict')) throw error;
    }
  }
}

/** Returns whether the Pod counts as terminated. False for mirror Pods, which their node manages, and for Pods that are being deleted. */
const isTerminated = (pod: Pod): boolean =>
  hasEnded(pod) && !isMirrorPod(pod) && pod.metadata.deletionTimestamp === undefined;

function evictedFirst(a: Pod, b: Pod): number {
  const wasEvicted = ({ status }: Pod): number => Number(status?.reason === 'Evicted');
  const created = ({ metadata }: Pod): string => metadata.creationTimestamp ?? '';
  return (
    wasEvicted(b) - wasEvicted(a) ||
    created(a).localeCompare(created(b)) ||
    a.metadata.name.localeCompare(b.metadata.name)
  );
}
