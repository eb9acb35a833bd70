/**
 * Evicts Pods that do not tolerate a NoExecute taint of their node, either immediately or after their tolerationSeconds.
 *
 * Reads: nodes, pods. Writes: pods (status: the condition DisruptionTarget; delete), events.
 * Invariants:
 *  1. A Pod has the condition DisruptionTarget before it is deleted. A Pod that this controller has marked, but no longer deletes, for
 *     example after a crash between the two writes, gets the condition False.
 *  2. When the tolerationSeconds of a Pod have passed, its tolerations and the node's taints are checked again before the
 *     Pod is deleted.
 *  3. tolerationSeconds count, for each taint, from the time at which this controller first sees that it may evict the Pod, so the time in
 *     which no engine runs does not count. A not-ready or unreachable taint that was added before the start of the engine evicts
 *     no Pod in the first minute, in which the node reports its state and may lose the taint.
 *  4. If tolerationSeconds pass while the machine is suspended, the node first has a minute to report its state.
 *  5. A change of a node or a Pod examines only the Pods of that node.
 * Source: "Taint based Evictions" of the v1.33 documentation; pkg/controller/tainteviction of v1.33 (wording).
 */

import { isDeepStrictEqual } from 'node:util';
import { isMirrorPod } from '../../api/core/v1/pod/mirror.ts';
import { hasEnded } from '../../api/core/v1/pod/status/final-phase.ts';
import type { Node, Pod, PodCondition } from '../../api/generated/types.ts';
import { NODES, PODS } from '../../api/resources.ts';
import type { ResourceClient } from '../../client/client.ts';
import { createEventRecorder } from '../../client/events.ts';
import { deleteWithStatus, unlessChanged } from '../../client/unless-changed.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import { uidOf } from '../../machinery/meta.ts';
import { formatTime, type Millis } from '../../machinery/time.ts';
import { type LimitedStay, limitedStays } from '../../scheduling/node-taints.ts';
import { type ControllerOptions, nodeNamesOf } from '../controller.ts';
import { type KnownTaints, knownTaints } from './known-taints.ts';
import { pendingEvictions } from './pending-evictions.ts';

const keyOf = ({ metadata }: Pod): string => `${metadata.namespace}/${metadata.name}`;

export async function startTaintEviction(options: ControllerOptions): Promise<void> {
  const { client, informers, timers, log, signal } = options;
  const podClient = client.resource<Pod>(PODS);
  const taints = knownTaints(timers, signal, () => {
    for (const { metadata, spec } of nodes.list()) if (spec?.taints?.some(taints.isOld)) considerPodsOf(metadata.name);
  });
  const events = createEventRecorder(client, { component: 'taint-eviction-controller', timers, log, signal });
  const queue = createWorkQueue({ name: 'taint-eviction', process: evict, log, timers, signal });
  const pending = pendingEvictions(timers, signal, (pod) => queue.add(keyOf(pod)));

  const consider = (pod: Pod): void => {
    const { uid = '', deletionTimestamp } = pod.metadata;
    const stays = staysOf(pod, nodeOf(pod), taints);
    const wasPending = pending.has(uid);
    if (stays.length > 0) {
      pending.schedule(pod, stays);
      return;
    }
    pending.cancel(uid);
    if (isMarked(pod)) queue.add(keyOf(pod));
    if (wasPending && deletionTimestamp === undefined && !hasEnded(pod))
      events.event(pod, 'Normal', 'TaintManagerEviction', `Cancelling deletion of Pod ${keyOf(pod)}`);
  };
  const considerPodsOf = (node: string): void => {
    for (const pod of pods.by(nodeNamesOf, node)) consider(pod);
  };
  const nodes = informers.follow<Node>(
    NODES,
    { signal },
    {
      added: ({ metadata }) => considerPodsOf(metadata.name),
      updated({ metadata, spec }, old) {
        if (!isDeepStrictEqual(spec?.taints, old.spec?.taints)) considerPodsOf(metadata.name);
      },
    },
  );
  const pods = informers.follow<Pod>(
    PODS,
    { signal },
    { added: consider, updated: consider, deleted: ({ metadata: { uid = '' } }) => pending.cancel(uid) },
  );
  await Promise.all([nodes.synced, pods.synced]);

  function nodeOf({ spec }: Pod): Node | undefined {
    return spec?.nodeName ? nodes.get(undefined, spec.nodeName) : undefined;
  }

  async function evict(key: string): Promise<void> {
    const [namespace, name] = key.split('/') as [string, string];
    const pod = pods.get(namespace, name);
    if (pod === undefined) return;
    const uid = uidOf(pod);
    const stays = staysOf(pod, nodeOf(pod), taints);
    if (stays.length === 0 && nodeOf(pod) !== undefined && isMarked(pod)) return unmark(podClient, pod, timers.now());
    if (!pending.isDue(uid, stays)) return;
    log.info('taint-eviction: deleting a Pod that does not tolerate the taints of its node', { pod: key });
    events.event(pod, 'Normal', 'TaintManagerEviction', `Marking for deletion Pod ${key}`);
    await deleteWithStatus(podClient, pod, { conditions: [disruption(timers.now())] });
    pending.cancel(uid);
  }
}

/** Returns the taints that limit the stay of the Pod on its node; an empty list if the Pod must not be evicted. */
function staysOf(pod: Pod, node: Node | undefined, taints: KnownTaints): LimitedStay[] {
  if (node === undefined || pod.metadata.deletionTimestamp !== undefined || hasEnded(pod) || isMirrorPod(pod))
    return [];
  return limitedStays(pod, (node.spec?.taints ?? []).filter(taints.counts));
}

const REASON = 'DeletionByTaintManager';

/** Whether this controller has announced the deletion of the Pod, but the Pod is not being deleted and has not ended. */
const isMarked = (pod: Pod): boolean =>
  pod.metadata.deletionTimestamp === undefined &&
  !hasEnded(pod) &&
  (pod.status?.conditions ?? []).some(
    ({ type, status, reason }) => type === 'DisruptionTarget' && status === 'True' && reason === REASON,
  );

/**
 * Sets the condition DisruptionTarget to False. Writes nothing if the Pod has changed since it was read: the change queues the Pod again.
 */
async function unmark(pods: ResourceClient<Pod>, { metadata }: Pod, now: Millis): Promise<void> {
  const condition = { type: 'DisruptionTarget', status: 'False', lastTransitionTime: formatTime(now) };
  const { uid, resourceVersion } = metadata;
  const change = { metadata: { uid, resourceVersion }, status: { conditions: [condition] } };
  const type = 'application/strategic-merge-patch+json';
  await unlessChanged(pods.patch(metadata.name, metadata.namespace, type, change, 'status'));
}

const disruption = (now: Millis): PodCondition => ({
  type: 'DisruptionTarget',
  status: 'True',
  lastTransitionTime: formatTime(now),
  reason: REASON,
  message: 'Taint manager: deleting due to NoExecute taint',
});
