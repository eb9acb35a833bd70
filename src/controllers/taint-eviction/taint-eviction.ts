/**
 * Evicts Pods that do not tolerate a NoExecute taint of their node, either immediately or after their tolerationSeconds.
 *
 * Reads: nodes, pods. Writes: pods (status: the condition DisruptionTarget; delete), events.
 * Invariants:
 *  1. When the tolerationSeconds of a Pod have passed, its tolerations and the node's taints are checked again before the
 *     Pod is deleted.
 *  2. tolerationSeconds count from the time at which this controller first sees that a taint may evict the Pod, so the time in
 *     which no engine runs does not count. A not-ready or unreachable taint that was added before the start of the engine evicts
 *     no Pod, because the node may be ready by now.
 *  3. If tolerationSeconds pass while the machine is suspended, the node first has a minute to report its state.
 * Source: "Taint based Evictions" of the v1.33 documentation; pkg/controller/tainteviction of v1.33 (wording).
 */

import { isDeepStrictEqual } from 'node:util';
import { isMirrorPod } from '../../api/core/v1/pod/mirror.ts';
import { hasEnded } from '../../api/core/v1/pod/status/final-phase.ts';
import type { Node, Pod, PodCondition, Taint } from '../../api/generated/types.ts';
import { NODES, PODS } from '../../api/resources.ts';
import { createEventRecorder } from '../../client/events.ts';
import { deleteWithStatus } from '../../client/unless-changed.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import { uidOf } from '../../machinery/meta.ts';
import { formatTime, type Millis, parseTime } from '../../machinery/time.ts';
import { onAbort } from '../../platform/on-abort.ts';
import type { Timer, Timers } from '../../platform/platform.ts';
import { EVICTING_KEYS, staysForSeconds } from '../../scheduling/node-taints.ts';
import { type ControllerOptions, nodeNamesOf, SUSPENDED_MILLIS } from '../controller.ts';

/** Timestamps in the API are truncated to whole seconds. */
const WHOLE_SECONDS_MILLIS = 1000;

/** How long a node may take to report its state after a suspension. A runtime that does not answer is reported after 30 s. */
const WAKE_UP_MILLIS = 60_000;

const keyOf = ({ metadata }: Pod): string => `${metadata.namespace}/${metadata.name}`;

export async function startTaintEviction(options: ControllerOptions): Promise<void> {
  const { client, informers, timers, log, signal } = options;
  const podClient = client.resource<Pod>(PODS);
  const startedAt = timers.now();
  const isCurrent = ({ key, timeAdded }: Taint): boolean =>
    !EVICTING_KEYS.includes(key) || (parseTime(timeAdded) ?? 0) > startedAt - WHOLE_SECONDS_MILLIS;
  const events = createEventRecorder(client, { component: 'taint-eviction-controller', timers, log, signal });
  const queue = createWorkQueue({ name: 'taint-eviction', process: evict, log, timers, signal });
  const pending = pendingEvictions(timers, signal, (pod) => queue.add(keyOf(pod)));

  const consider = (pod: Pod): void => {
    const { uid = '', deletionTimestamp } = pod.metadata;
    const seconds = secondsLeft(pod);
    const wasPending = pending.has(uid);
    if (seconds !== undefined) {
      pending.schedule(pod, seconds);
      return;
    }
    pending.cancel(uid);
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

  /**
   * Returns how many seconds the Pod may stay on its node; undefined if the Pod is not evicted, because it tolerates the taints
   * forever, has no known node, is being deleted, has ended, or is a mirror Pod.
   */
  function secondsLeft(pod: Pod): number | undefined {
    const node = pod.spec?.nodeName ? nodes.get(undefined, pod.spec.nodeName) : undefined;
    if (node === undefined || pod.metadata.deletionTimestamp !== undefined || hasEnded(pod) || isMirrorPod(pod))
      return undefined;
    return staysForSeconds(pod, (node.spec?.taints ?? []).filter(isCurrent));
  }

  async function evict(key: string): Promise<void> {
    const [namespace, name] = key.split('/') as [string, string];
    const pod = pods.get(namespace, name);
    if (pod === undefined) return;
    const uid = uidOf(pod);
    const seconds = secondsLeft(pod);
    const since = pending.since(uid);
    if (seconds === undefined || since === undefined || since + seconds * 1000 > timers.now()) return;
    log.info('taint-eviction: deleting a Pod that does not tolerate the taints of its node', { pod: key });
    events.event(pod, 'Normal', 'TaintManagerEviction', `Marking for deletion Pod ${key}`);
    await deleteWithStatus(podClient, pod, { conditions: [disruption(timers.now())] });
    pending.cancel(uid);
  }
}

interface PendingEvictions {
  has(uid: string): boolean;
  /** Returns the time from which the seconds count: the first schedule(), or later after a suspension; undefined if none is pending. */
  since(uid: string): Millis | undefined;
  /** Calls `due` once the Pod may no longer stay, `seconds` after the time that since() returns. */
  schedule(pod: Pod, seconds: number): void;
  cancel(uid: string): void;
}

/** Keeps a timer for each Pod that is to be evicted, by the UID of the Pod. */
function pendingEvictions(timers: Timers, signal: AbortSignal, due: (pod: Pod) => void): PendingEvictions {
  const pending = new Map<string, { since: Millis; timer: Timer }>();
  onAbort(signal, () => {
    for (const { timer } of pending.values()) timer.cancel();
  });
  const cancel = (uid: string): void => {
    pending.get(uid)?.timer.cancel();
    pending.delete(uid);
  };
  const start = (pod: Pod, since: Millis, seconds: number): void => {
    const at = since + seconds * 1000;
    const timer = timers.at(at, () => {
      const lateMillis = timers.now() - at;
      if (lateMillis < SUSPENDED_MILLIS) due(pod);
      else start(pod, since + lateMillis + WAKE_UP_MILLIS, seconds);
    });
    pending.set(uidOf(pod), { since, timer });
  };
  return {
    has: (uid) => pending.has(uid),
    since: (uid) => pending.get(uid)?.since,
    schedule(pod, seconds) {
      const uid = uidOf(pod);
      const since = pending.get(uid)?.since ?? timers.now();
      cancel(uid);
      start(pod, since, seconds);
    },
    cancel,
  };
}

const disruption = (now: Millis): PodCondition => ({
  type: 'DisruptionTarget',
  status: 'True',
  lastTransitionTime: formatTime(now),
  reason: 'DeletionByTaintManager',
  message: 'Taint manager: deleting due to NoExecute taint',
});
