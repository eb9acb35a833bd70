/**
 * Deletes Pods from nodes whose taints drive them away, at once or after the time for which they tolerate them.
 *
 * Reads: nodes, pods. Writes: pods (status: the condition DisruptionTarget; delete), events.
 * Invariants:
 *  1. Who may go is looked at again when the time has come.
 *  2. The time counts from when this controller sees the taint first: while no engine runs, no time passes. That a node was
 *     not ready when an engine ended says nothing of it now.
 *  3. A time that ended while the machine was suspended ends a minute after: the node is asked first how it is.
 * Source: "Taint based Evictions" of the v1.33 documentation; pkg/controller/tainteviction of v1.33 (wording).
 */
import { isDeepStrictEqual } from 'node:util';
import { isMirrorPod } from '../../api/core/v1/pod/mirror.ts';
import { hasEnded } from '../../api/core/v1/pod/status/phase.ts';
import type { Node, Pod, PodCondition, Taint } from '../../api/generated/types.ts';
import { createEventRecorder } from '../../client/events.ts';
import { createInformer } from '../../client/informer.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import { isApiError } from '../../machinery/status.ts';
import { formatTime, type Millis, parseTime } from '../../machinery/time.ts';
import { onAbort } from '../../platform/on-abort.ts';
import type { Timer } from '../../platform/platform.ts';
import { EVICTING_KEYS, staysForSeconds } from '../../scheduling/node-taints.ts';
import { type ControllerOptions, SLEPT_MILLIS } from '../controller.ts';
import { NODES, PODS } from '../resources.ts';

/** Times in the API are cut to whole seconds. */
const WHOLE_SECONDS_MILLIS = 1000;

/** For a node that has just woken to say how it is: its runtime may be silent for 30 s. */
const AWAKE_MILLIS = 60_000;

interface Sentence {
  since: Millis;
  timer: Timer;
}

const keyOf = ({ metadata }: Pod): string => `${metadata.namespace}/${metadata.name}`;

export async function startTaintEviction(options: ControllerOptions): Promise<void> {
  const { client, timers, log, signal } = options;
  const podClient = client.resource<Pod>(PODS);
  const startedAt = timers.now();
  const holds = ({ key, timeAdded }: Taint): boolean =>
    !EVICTING_KEYS.includes(key) || (parseTime(timeAdded) ?? 0) > startedAt - WHOLE_SECONDS_MILLIS;
  const events = createEventRecorder(client, { component: 'taint-eviction-controller', timers, log, signal });
  const queue = createWorkQueue({ name: 'taint-eviction', process: evict, log, timers, signal });
  /** By UID of the Pod. */
  const sentences = new Map<string, Sentence>();
  onAbort(signal, () => {
    for (const { timer } of sentences.values()) timer.cancel();
  });

  const consider = (pod: Pod): void => {
    const { uid = '', deletionTimestamp } = pod.metadata;
    const before = sentences.get(uid);
    const seconds = secondsLeft(pod);
    forget(uid);
    if (seconds === undefined) {
      if (before !== undefined && deletionTimestamp === undefined && !hasEnded(pod))
        events.event(pod, 'Normal', 'TaintManagerEviction', `Cancelling deletion of Pod ${keyOf(pod)}`);
      return;
    }
    sentence(pod, before?.since ?? timers.now(), seconds);
  };
  const sentence = (pod: Pod, since: Millis, seconds: number): void => {
    const at = since + seconds * 1000;
    const timer = timers.at(at, () => {
      const lateMillis = timers.now() - at;
      if (lateMillis < SLEPT_MILLIS) queue.add(keyOf(pod));
      else sentence(pod, since + lateMillis + AWAKE_MILLIS, seconds);
    });
    sentences.set(pod.metadata.uid ?? '', { since, timer });
  };
  const lookAt = (node: string): void => {
    for (const pod of pods.list()) if (pod.spec?.nodeName === node) consider(pod);
  };
  const nodes = createInformer(
    client.resource<Node>(NODES),
    { log, timers, signal },
    {
      added: ({ metadata }) => lookAt(metadata.name),
      updated({ metadata, spec }, old) {
        if (!isDeepStrictEqual(spec?.taints, old.spec?.taints)) lookAt(metadata.name);
      },
    },
  );
  const pods = createInformer(
    podClient,
    { log, timers, signal },
    { added: consider, updated: consider, deleted: ({ metadata: { uid = '' } }) => forget(uid) },
  );
  await Promise.all([nodes.synced, pods.synced]);

  function forget(uid: string): void {
    sentences.get(uid)?.timer.cancel();
    sentences.delete(uid);
  }

  /** undefined: it stays, or ends already. What runs from a file of the node, nobody drives away. */
  function secondsLeft(pod: Pod): number | undefined {
    const node = pod.spec?.nodeName ? nodes.get(undefined, pod.spec.nodeName) : undefined;
    if (node === undefined || pod.metadata.deletionTimestamp !== undefined || hasEnded(pod) || isMirrorPod(pod))
      return undefined;
    return staysForSeconds(pod, (node.spec?.taints ?? []).filter(holds));
  }

  async function evict(key: string): Promise<void> {
    const [namespace, name] = key.split('/') as [string, string];
    const pod = pods.get(namespace, name);
    if (pod === undefined) return;
    const { uid = '' } = pod.metadata;
    const seconds = secondsLeft(pod);
    const since = sentences.get(uid)?.since;
    if (seconds === undefined || since === undefined || since + seconds * 1000 > timers.now()) return;
    log.info('taint-eviction: deleting a Pod that does not tolerate the taints of its node', { pod: key });
    events.event(pod, 'Normal', 'TaintManagerEviction', `Marking for deletion Pod ${key}`);
    try {
      const change = { metadata: { uid }, status: { conditions: [disruption(timers.now())] } };
      await podClient.patch(name, namespace, 'application/strategic-merge-patch+json', change, 'status');
      await podClient.delete(name, namespace, { preconditions: { uid } });
    } catch (error) {
      if (!isApiError(error, 'NotFound') && !isApiError(error, 'Conflict')) throw error;
    }
    forget(uid);
  }
}

const disruption = (now: Millis): PodCondition => ({
  type: 'DisruptionTarget',
  status: 'True',
  lastTransitionTime: formatTime(now),
  reason: 'DeletionByTaintManager',
  message: 'Taint manager: deleting due to NoExecute taint',
});
