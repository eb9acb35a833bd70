/**
 * Force-deletes the Pods that no agent deletes: Pods whose node no longer exists; Pods that are being deleted and have no node, or whose
 * node is not ready and has the taint node.kubernetes.io/out-of-service; and terminated Pods if there are too many, evicted ones first,
 * then the oldest.
 *
 * Reads: nodes, pods. Writes: pods (status: phase Failed, the conditions DisruptionTarget and Deferred; delete, without a grace period).
 * Invariants:
 *  1. A Pod is deleted only after its phase is final, so that its owner and the controllers with a finalizer on the Pod never see a running
 *     Pod disappear.
 *  2. A node counts as removed only once it has been missing in the informer's cache for 40 s without a break, and is missing in the API.
 *  3. The phase Unknown is only read: no component of v1.33 sets it. A Pod in this phase does not count as terminated.
 *  4. A change of a node or a Pod examines only the Pods of that node.
 * Source: "Pod garbage collection" and "Non-graceful node shutdown handling" of the v1.33 documentation; pkg/controller/podgc of v1.33,
 * which examines all Pods every 20 s instead.
 */
import type { Node, Pod } from '../../api/generated/types.ts';
import { NODES, PODS } from '../../api/resources.ts';
import { deleteWithStatus } from '../../client/unless-changed.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import { uidOf } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import { type ControllerOptions, nodeNamesOf } from '../controller.ts';
import { createWakes } from '../wakes.ts';
import {
  type Cause,
  isBeingDeleted,
  isForcedAlready,
  isOutOfService,
  isTerminated,
  isUnscheduledTerminating,
  lastStatus,
  tooMany,
} from './collect.ts';

/** How long a node may be missing before its Pods are deleted. */
const QUARANTINE_MILLIS = 40 * 1000;
/** The default of upstream's --terminated-pod-gc-threshold. */
export const DEFAULT_TERMINATED_PODS = 12_500;
/** The queue key for the collection of terminated Pods. A key with a slash identifies a Pod, any other key is the name of a node. */
const TERMINATED = '';

/** `terminatedPods`: how many terminated Pods to keep. 0 means all. */
export async function startPodGc(options: ControllerOptions & { terminatedPods?: number }): Promise<void> {
  const { informers, timers, log, signal, terminatedPods = DEFAULT_TERMINATED_PODS } = options;
  const queue = createWorkQueue({ name: 'pod-gc', process: collect, log, timers, signal });
  const terminated = new Map<string, Pod>();
  /** Names of missing nodes that may still return. */
  const quarantined = new Set<string>();
  const wakes = createWakes(timers, signal, (node) => {
    quarantined.delete(node);
    queue.add(node);
  });

  const changed = (node: Node): void => {
    if (isOutOfService(node)) queue.add(node.metadata.name);
  };
  const exists = (node: Node): void => {
    quarantined.delete(node.metadata.name);
    wakes.cancel(node.metadata.name);
    changed(node);
  };
  const nodes = informers.follow<Node>(
    NODES,
    { signal },
    { added: exists, updated: changed, deleted: ({ metadata }) => suspect(metadata.name) },
  );
  await nodes.synced;
  const pods = informers.follow<Pod>(
    PODS,
    { signal },
    { added: seen, updated: seen, deleted: ({ metadata: { uid = '' } }) => void terminated.delete(uid) },
  );
  await pods.synced;

  function seen(pod: Pod): void {
    const node = pod.spec?.nodeName;
    if (node) suspect(node);
    if (isUnscheduledTerminating(pod)) queue.add(`${pod.metadata.namespace}/${pod.metadata.name}`);
    else if (node && isBeingDeleted(pod)) {
      const found = nodes.get(undefined, node);
      if (found !== undefined) changed(found);
    }
    const uid = uidOf(pod);
    if (isTerminated(pod)) terminated.set(uid, pod);
    else terminated.delete(uid);
    if (terminatedPods > 0 && terminated.size > terminatedPods) queue.add(TERMINATED);
  }

  function suspect(node: string): void {
    if (nodes.get(undefined, node) !== undefined || quarantined.has(node)) return;
    quarantined.add(node);
    wakes.set(node, timers.now() + QUARANTINE_MILLIS);
  }

  async function collect(key: string): Promise<void> {
    if (key === TERMINATED) return removeAll(options, tooMany(terminated.values(), terminatedPods), 'terminated');
    if (key.includes('/')) {
      const pod = pods.get(...(key.split('/') as [string, string]));
      return removeAll(options, pod !== undefined && isUnscheduledTerminating(pod) ? [pod] : [], 'unscheduled');
    }
    const ofNode = [...pods.by(nodeNamesOf, key)];
    const node = nodes.get(undefined, key);
    if (node !== undefined)
      return removeAll(options, isOutOfService(node) ? ofNode.filter(isBeingDeleted) : [], 'out-of-service');
    if (quarantined.has(key) || ofNode.length === 0 || (await isInApi(options, key))) return;
    await removeAll(options, ofNode, 'orphaned');
  }
}

/** Reads the API, because the informer's cache may be incomplete. */
async function isInApi({ client }: ControllerOptions, node: string): Promise<boolean> {
  try {
    await client.resource<Node>(NODES).get(node);
    return true;
  } catch (error) {
    if (isApiError(error, 'NotFound')) return false;
    throw error;
  }
}

/** Attempts to remove all Pods, then rejects with the first error. */
async function removeAll(options: ControllerOptions, pods: readonly Pod[], cause: Cause): Promise<void> {
  const errors: unknown[] = [];
  for (const pod of pods)
    if (!isForcedAlready(pod)) await remove(options, pod, cause).catch((error: unknown) => errors.push(error));
  if (errors.length > 0) throw errors[0];
}

async function remove({ client, timers, log }: ControllerOptions, pod: Pod, cause: Cause): Promise<void> {
  const { name, namespace } = pod.metadata;
  log.info('pod-gc: deleting a Pod', { pod: `${namespace}/${name}`, why: cause, node: pod.spec?.nodeName });
  const status = lastStatus(pod, cause, timers.now());
  await deleteWithStatus(client.resource<Pod>(PODS), pod, status, { gracePeriodSeconds: 0 });
}
