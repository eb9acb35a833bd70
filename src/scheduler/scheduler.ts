/**
 * The scheduler: binds each Pod without a node to one as soon as the Pod appears.
 *
 * Boundary: src/scheduling decides; this folder watches, binds, and reports why a Pod cannot be scheduled.
 *
 * Invariants:
 *  1. A Pod counts as bound (assumed) from the decision on, before the API shows the binding, so that the next decision
 *     does not allocate the same resources again.
 *  2. An unschedulable Pod is retried when a node, a bound Pod or storage changes so that it might fit, not periodically.
 *  3. A Pod is bound only once all its claims are bound. For claims that wait for a consumer, the chosen node is written to
 *     the claims first.
 *  4. Resources freed by preemption are reserved for the preempting Pod: its node is nominated before its victims are deleted.
 *
 * Source: kube-scheduler of v1.33 (behavior, Events and condition).
 */

import { isDeepStrictEqual } from 'node:util';
import { hasEnded } from '../api/core/v1/pod/status/phase.ts';
import type {
  Binding,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  PodCondition,
  StorageClass,
} from '../api/generated/types.ts';
import { NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, STORAGE_CLASSES } from '../api/resources.ts';
import type { Client } from '../client/client.ts';
import { createEventRecorder } from '../client/events.ts';
import { createInformer } from '../client/informer.ts';
import { createWorkQueue } from '../client/work-queue.ts';
import { isApiError } from '../machinery/status.ts';
import { formatTime } from '../machinery/time.ts';
import type { Log, Timers } from '../platform/platform.ts';
import { importantFirst, priorityOf, roomFor } from '../scheduling/preemption.ts';
import { schedule } from '../scheduling/schedule.ts';
import { isBound, SELECTED_NODE, unboundClaims, type VolumeFacts } from '../scheduling/volume-claims.ts';
import { volumeIndex } from '../scheduling/volume-search.ts';
import { mayFitBetter } from './node-changes.ts';
import { createUnschedulable } from './unschedulable.ts';

export interface SchedulerOptions {
  client: Client;
  timers: Timers;
  log: Log;
  /** Schedules only Pods with this spec.schedulerName, such as `default-scheduler`. */
  schedulerName: string;
  signal: AbortSignal;
}

const keyOf = ({ metadata }: Pod): string => `${metadata.namespace}/${metadata.name}`;

/** Starts the scheduler, which runs until the signal aborts. Resolves once every existing Pod has been queued. */
export async function startScheduler(options: SchedulerOptions): Promise<void> {
  const { client, timers, log, schedulerName, signal } = options;
  const podClient = client.resource<Pod>(PODS);
  const events = createEventRecorder(client, { component: schedulerName, timers, log, signal });
  /** Pods that this scheduler has bound, until the informer shows the binding; by UID. */
  const assumed = new Map<string, Pod>();
  /** The nodes on which victims are preempted for a Pod, by the UID of the Pod. */
  const nominated = new Map<string, string>();
  const unschedulable = createUnschedulable({
    pod: (key) => pods.get(...parts(key)),
    retry: (key) => queue.add(key),
  });
  let ready = false;

  const isOurs = (pod: Pod): boolean =>
    !pod.spec?.nodeName &&
    (pod.spec?.schedulerName ?? schedulerName) === schedulerName &&
    (pod.spec?.schedulingGates ?? []).length === 0 &&
    pod.metadata.deletionTimestamp === undefined &&
    !hasEnded(pod);
  const consider = (pod: Pod): void => {
    if (pod.spec?.nodeName) assumed.delete(pod.metadata.uid as string);
    if (ready && isOurs(pod)) queue.add(keyOf(pod));
    else if (!isOurs(pod)) forget(pod);
  };
  const forget = (pod: Pod): void => {
    unschedulable.delete(keyOf(pod));
    nominated.delete(pod.metadata.uid as string);
  };

  const pods = createInformer(
    podClient,
    { log, timers, signal },
    {
      added: consider,
      updated(pod, old) {
        // A change of the status, which is frequent, does not change where the Pod fits.
        if (!old.spec?.nodeName && !isDeepStrictEqual(pod.spec, old.spec)) consider(pod);
        if (hasEnded(pod) && !hasEnded(old)) unschedulable.retryAll();
      },
      deleted(pod) {
        assumed.delete(pod.metadata.uid as string);
        const wasNominated = nominated.has(pod.metadata.uid as string);
        forget(pod);
        if (pod.spec?.nodeName || wasNominated) unschedulable.retryAll();
      },
    },
  );
  const nodes = createInformer(
    client.resource<Node>(NODES),
    { log, timers, signal },
    {
      added: unschedulable.retryAll,
      updated(node, old) {
        if (mayFitBetter(node, old)) unschedulable.retryAll();
      },
    },
  );
  const claimClient = client.resource<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIMS);
  const claimChanged = ({ metadata }: PersistentVolumeClaim): void =>
    unschedulable.retryWithClaim(metadata.namespace as string, metadata.name);
  const claims = createInformer(claimClient, { log, timers, signal }, { added: claimChanged, updated: claimChanged });
  const index = volumeIndex();
  const volumes = createInformer(
    client.resource<PersistentVolume>(PERSISTENT_VOLUMES),
    { log, timers, signal },
    {
      added(volume) {
        index.put(volume);
        unschedulable.retryWithClaims();
      },
      updated(volume, old) {
        index.remove(old);
        index.put(volume);
        unschedulable.retryWithClaims();
      },
      deleted: index.remove,
    },
  );
  const classes = createInformer(
    client.resource<StorageClass>(STORAGE_CLASSES),
    { log, timers, signal },
    { added: unschedulable.retryWithClaims, updated: unschedulable.retryWithClaims },
  );
  const storage: VolumeFacts = {
    claim: (namespace, name) => claims.get(namespace, name),
    volume: (name) => volumes.get(undefined, name),
    search: () => index,
    storageClass: (name) => classes.get(undefined, name),
  };
  const queue = createWorkQueue({ name: 'scheduler', process: scheduleOne, log, timers, signal });

  async function scheduleOne(key: string): Promise<void> {
    const pod = pods.get(...parts(key));
    if (pod === undefined || !isOurs(pod) || assumed.has(pod.metadata.uid as string)) return;
    const taken = [...takenBy(pods.list()), ...assumed.values()];
    const others = [...taken, ...nominatedBefore(pod)];
    const placement = schedule(pod, nodes.list(), others, storage);
    if ('node' in placement) {
      const waiting = unboundClaims(pod, storage);
      if (waiting.length > 0) {
        unschedulable.add(key);
        await Promise.all(waiting.map((claim) => selectNode(claim, placement.node)));
        return;
      }
      unschedulable.delete(key);
      await bind(pod, placement.node);
      return;
    }
    unschedulable.add(key);
    // A claim is being bound and the informer has not seen its volume yet: not a failure. The claim's update retries the Pod.
    if (unboundClaims(pod, storage).some((claim) => isBound(claim) && claim.status?.phase !== 'Lost')) return;
    events.event(pod, 'Warning', 'FailedScheduling', placement.message);
    const room = roomFor(pod, nodes.list(), others, storage);
    if (room === undefined) nominated.delete(pod.metadata.uid as string);
    else nominated.set(pod.metadata.uid as string, room.node);
    await reportUnschedulable(pod, placement.message, room?.node);
    for (const victim of room?.victims ?? []) await preempt(victim, pod, room?.node ?? '');
  }

  /** The Pods of at least the same priority for which victims are being preempted, as if they ran on their nominated nodes. */
  function nominatedBefore(than: Pod): Pod[] {
    if (nominated.size === 0) return [];
    return pods
      .list()
      .filter((pod) => pod.metadata.uid !== than.metadata.uid && isOurs(pod) && priorityOf(pod) >= priorityOf(than))
      .flatMap((pod) => {
        const nodeName = nominated.get(pod.metadata.uid as string);
        return nodeName === undefined || assumed.has(pod.metadata.uid as string) ? [] : [onNode(pod, nodeName)];
      });
  }

  /** Deletes the victim with its grace period. The Pods that wait for its resources are retried when it is gone. */
  async function preempt(victim: Pod, by: Pod, node: string): Promise<void> {
    const { name, namespace, uid } = victim.metadata;
    const condition: PodCondition = {
      type: 'DisruptionTarget',
      status: 'True',
      lastTransitionTime: formatTime(timers.now()),
      reason: 'PreemptionByScheduler',
      message: `${schedulerName}: preempting to accommodate a higher priority pod`,
    };
    const change = { metadata: { uid }, status: { conditions: [condition] } };
    try {
      await podClient.patch(name, namespace, 'application/strategic-merge-patch+json', change, 'status');
      await podClient.delete(name, namespace, { preconditions: { uid } });
    } catch (error) {
      if (isApiError(error, 'NotFound') || isApiError(error, 'Conflict')) return;
      throw error;
    }
    events.event(victim, 'Normal', 'Preempted', `Preempted by pod ${by.metadata.uid} on node ${node}`);
  }

  /** Writes the node to the claim, for the provisioner. The Pod is retried once the claim is bound. */
  async function selectNode(claim: PersistentVolumeClaim, node: string): Promise<void> {
    const { metadata } = claim;
    if (isBound(claim) || metadata.annotations?.[SELECTED_NODE] === node) return;
    const change = { metadata: { annotations: { [SELECTED_NODE]: node } } };
    await claimClient.patch(metadata.name, metadata.namespace, 'application/merge-patch+json', change);
  }

  async function bind(pod: Pod, node: string): Promise<void> {
    const { namespace, name, uid } = pod.metadata as { namespace: string; name: string; uid: string };
    assumed.set(uid, onNode(pod, node));
    const target = { apiVersion: 'v1', kind: 'Node', name: node };
    const binding: Binding = { apiVersion: 'v1', kind: 'Binding', metadata: { name, namespace, uid }, target };
    try {
      await podClient.createSubresource(name, namespace, 'binding', binding);
    } catch (error) {
      assumed.delete(uid);
      // The Pod was deleted, or another client has bound it: the informer reports either.
      if (isApiError(error, 'NotFound') || isApiError(error, 'Conflict')) return;
      throw error;
    }
    events.event(pod, 'Normal', 'Scheduled', `Successfully assigned ${namespace}/${name} to ${node}`);
  }

  /** Writes the condition PodScheduled. `nominatedNode`: the node on which victims are preempted for the Pod. */
  async function reportUnschedulable(pod: Pod, message: string, nominatedNode: string | undefined): Promise<void> {
    const condition: PodCondition = {
      type: 'PodScheduled',
      status: 'False',
      reason: 'Unschedulable',
      message,
      lastTransitionTime: formatTime(timers.now()),
    };
    const old = pod.status?.conditions?.find((each) => each.type === 'PodScheduled');
    const isReported = old?.status === 'False' && old.reason === condition.reason && old.message === message;
    if (isReported && (pod.status?.nominatedNodeName || undefined) === nominatedNode) return;
    if (old?.status === 'False') condition.lastTransitionTime = old.lastTransitionTime;
    const { name, namespace } = pod.metadata;
    try {
      const change = { status: { conditions: [condition], nominatedNodeName: nominatedNode ?? null } };
      await podClient.patch(name, namespace, 'application/strategic-merge-patch+json', change, 'status');
    } catch (error) {
      if (!isApiError(error, 'NotFound')) throw error;
    }
  }

  await Promise.all([pods.synced, nodes.synced, claims.synced, volumes.synced, classes.synced]);
  ready = true;
  for (const { metadata, status } of pods.list())
    if (status?.nominatedNodeName) nominated.set(metadata.uid as string, status.nominatedNodeName);
  for (const pod of pods.list().sort(importantFirst)) consider(pod);
}

const parts = (key: string): [namespace: string, name: string] => key.split('/') as [string, string];

const takenBy = (pods: readonly Pod[]): Pod[] => pods.filter((pod) => pod.spec?.nodeName && !hasEnded(pod));

const onNode = (pod: Pod, nodeName: string): Pod => ({ ...pod, spec: { ...pod.spec, nodeName } }) as Pod;
