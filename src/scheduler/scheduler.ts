/**
 * Chooses a node for each Pod that has none, and binds the Pod to this node: the scheduler.
 *
 * Boundary: src/scheduling decides; this folder watches, binds, and reports why a Pod cannot be scheduled.
 *
 * Invariants:
 *  1. From the request of its binding until the informer reports the binding, a Pod counts as bound to the node (assumed), so that the next
 *     decision does not allocate the same resources again.
 *  2. An unschedulable Pod is not retried periodically, but after a change of a node, another Pod or storage that might let it fit.
 *  3. A Pod is bound only after all its claims are bound. For claims that wait for a consumer, the chosen node is written to the claims
 *     first.
 *  4. Resources freed by preemption are reserved for the preempting Pod: its nominated node is set before the victims are deleted. Pods of
 *     higher priority may still use these resources.
 *
 * Source: kube-scheduler of v1.33 (behavior, Events and condition).
 */

import { isDeepStrictEqual } from 'node:util';
import { hasEnded } from '../api/core/v1/pod/status/final-phase.ts';
import type { Namespace, Node, Pod, PodDisruptionBudget } from '../api/generated/types.ts';
import { NAMESPACES, NODES, POD_DISRUPTION_BUDGETS, PODS } from '../api/resources.ts';
import type { Client } from '../client/client.ts';
import { createEventRecorder, type EventRecorder } from '../client/events.ts';
import type { Informer } from '../client/informer.ts';
import type { SharedInformers } from '../client/shared-informers.ts';
import { createWorkQueue } from '../client/work-queue.ts';
import type { Log, Timers } from '../platform/platform.ts';
import { dependsOnPods } from '../scheduling/pod-rules.ts';
import { importantFirst, roomFor } from '../scheduling/preemption.ts';
import { type ClusterFacts, schedule } from '../scheduling/schedule.ts';
import { isBound, unboundClaims, type VolumeFacts } from '../scheduling/volume-claims.ts';
import { mayFitBetter } from './node-changes.ts';
import { PlacedPods } from './placed-pods.ts';
import { followStorage } from './storage.ts';
import { createUnschedulable, type Unschedulable } from './unschedulable.ts';
import { type SchedulerWrites, schedulerWrites } from './writes.ts';

export interface SchedulerOptions {
  client: Client;
  informers: SharedInformers;
  timers: Timers;
  log: Log;
  /** Pods with another spec.schedulerName are ignored. The usual name is `default-scheduler`. */
  schedulerName: string;
  signal: AbortSignal;
}

interface Scheduler {
  pods: Informer<Pod>;
  nodes: Informer<Node>;
  namespaces: Informer<Namespace>;
  budgets: Informer<PodDisruptionBudget>;
  storage: VolumeFacts;
  placed: PlacedPods;
  unschedulable: Unschedulable;
  events: EventRecorder;
  writes: SchedulerWrites;
  isOurs(pod: Pod): boolean;
}

const keyOf = ({ metadata }: Pod): string => `${metadata.namespace}/${metadata.name}`;

/** Runs until the signal aborts. Resolves once every existing Pod that needs a node has been queued. */
export async function startScheduler(options: SchedulerOptions): Promise<void> {
  const { client, informers, timers, log, schedulerName, signal } = options;
  const working = { log, timers, signal };
  const events = createEventRecorder(client, { component: schedulerName, ...working });
  const placed = new PlacedPods((pod) => {
    const current = pods.get(...parts(keyOf(pod)));
    return current !== undefined && current.metadata.uid === pod.metadata.uid && isOurs(current) ? current : undefined;
  });
  const unschedulable = createUnschedulable({
    pod: (key) => pods.get(...parts(key)),
    retry: (key) => queue.add(key),
  });
  let ready = false;

  const isOurs = (pod: Pod): boolean => needsNode(pod) && (pod.spec?.schedulerName ?? schedulerName) === schedulerName;
  const consider = (pod: Pod): void => {
    if (ready && isOurs(pod)) queue.add(keyOf(pod));
    else if (!isOurs(pod)) forget(pod);
  };
  const forget = (pod: Pod): void => {
    unschedulable.delete(keyOf(pod));
    placed.nominate(pod, undefined);
  };

  const pods = informers.follow<Pod>(
    PODS,
    { signal },
    {
      added(pod) {
        placed.observe(pod);
        consider(pod);
        if (pod.spec?.nodeName) unschedulable.retryDependent();
      },
      updated(pod, old) {
        placed.observe(pod);
        // Only the spec and the labels affect where the Pod fits. Changes of the status alone are frequent.
        if (!old.spec?.nodeName && !isDeepStrictEqual(placeable(pod), placeable(old))) consider(pod);
        if (hasEnded(pod) && !hasEnded(old)) unschedulable.retryAll();
        else if (changesRules(pod, old)) unschedulable.retryDependent();
      },
      deleted(pod) {
        const wasNominated = placed.isNominated(pod);
        placed.remove(pod);
        forget(pod);
        if (pod.spec?.nodeName || wasNominated) unschedulable.retryAll();
      },
    },
  );
  const nodes = followNodes(informers, signal, unschedulable);
  const budgets = informers.follow<PodDisruptionBudget>(POD_DISRUPTION_BUDGETS, { signal });
  const namespaces = followNamespaces(informers, signal, unschedulable);
  const { facts: storage, synced } = followStorage(informers, signal, unschedulable);
  const writes = schedulerWrites({ client, events, timers, schedulerName });
  const scheduler = { pods, nodes, namespaces, budgets, storage, placed, unschedulable, events, writes, isOurs };
  const queue = createWorkQueue({ name: 'scheduler', process: (key) => scheduleOne(scheduler, key), ...working });

  await Promise.all([pods.synced, nodes.synced, namespaces.synced, budgets.synced, synced]);
  ready = true;
  for (const pod of pods.list()) if (pod.status?.nominatedNodeName) placed.nominate(pod, pod.status.nominatedNodeName);
  for (const pod of pods.list().sort(importantFirst)) consider(pod);
}

function followNodes(informers: SharedInformers, signal: AbortSignal, unschedulable: Unschedulable): Informer<Node> {
  const updated = (node: Node, old: Node): void => {
    if (mayFitBetter(node, old)) unschedulable.retryAll();
  };
  const handlers = { added: unschedulable.retryAll, updated, deleted: unschedulable.retryAll };
  return informers.follow<Node>(NODES, { signal }, handlers);
}

/** The labels of a namespace decide which Pods a namespaceSelector of inter-Pod affinity selects. */
function followNamespaces(
  informers: SharedInformers,
  signal: AbortSignal,
  { retryAll }: Unschedulable,
): Informer<Namespace> {
  const updated = ({ metadata }: Namespace, old: Namespace): void => {
    if (!isDeepStrictEqual(metadata.labels, old.metadata.labels)) retryAll();
  };
  // A Pod may be known before its new namespace.
  return informers.follow<Namespace>(NAMESPACES, { signal }, { added: retryAll, updated });
}

async function scheduleOne(scheduler: Scheduler, key: string): Promise<void> {
  const { pods, nodes, storage, placed, unschedulable, writes, isOurs } = scheduler;
  const pod = pods.get(...parts(key));
  if (pod === undefined || !isOurs(pod) || placed.isAssumed(pod)) return;
  const placement = schedule(pod, nodes.list(), placed.before(pod), factsOf(scheduler));
  if (!('node' in placement)) {
    unschedulable.add(key, { dependsOnPods: dependsOnPods(pod) });
    await reportFailure(scheduler, pod, placement.message);
    return;
  }
  const waiting = unboundClaims(pod, storage);
  if (waiting.length > 0) {
    unschedulable.add(key);
    await Promise.all(waiting.map((claim) => writes.selectNode(claim, placement.node)));
    return;
  }
  unschedulable.delete(key);
  await bind(scheduler, pod, placement.node);
}

const factsOf = ({ storage, budgets, namespaces }: Scheduler): ClusterFacts => ({
  volumes: storage,
  budgets: budgets.list(),
  namespaceLabels: (name) => namespaces.get('', name)?.metadata.labels,
});

/** Reports why `pod` cannot be scheduled, and preempts Pods of lower priority if that lets it fit. */
async function reportFailure(scheduler: Scheduler, pod: Pod, message: string): Promise<void> {
  const { nodes, storage, placed, events, writes } = scheduler;
  // While a claim is being bound, the informer may not have received its volume yet. That is not a failure: the next change of the claim
  // retries the Pod.
  if (unboundClaims(pod, storage).some((claim) => isBound(claim) && claim.status?.phase !== 'Lost')) return;
  events.event(pod, 'Warning', 'FailedScheduling', message);
  const room = roomFor(pod, nodes.list(), placed.before(pod), factsOf(scheduler));
  placed.nominate(pod, room?.node);
  await writes.reportUnschedulable(pod, message, room?.node);
  for (const victim of room?.victims ?? []) await writes.preempt(victim, pod, room?.node ?? '');
}

async function bind({ placed, writes }: Scheduler, pod: Pod, node: string): Promise<void> {
  placed.assume(pod, node);
  let isDone = false;
  try {
    isDone = await writes.bind(pod, node);
  } finally {
    if (!isDone) placed.bindingFailed(pod);
  }
}

const needsNode = (pod: Pod): boolean =>
  !pod.spec?.nodeName &&
  (pod.spec?.schedulingGates ?? []).length === 0 &&
  pod.metadata.deletionTimestamp === undefined &&
  !hasEnded(pod);

/** Whether the change may affect how topology spread constraints or inter-Pod affinity count the Pod. */
const changesRules = (pod: Pod, old: Pod): boolean =>
  Boolean(pod.spec?.nodeName) &&
  (!old.spec?.nodeName ||
    pod.metadata.deletionTimestamp !== old.metadata.deletionTimestamp ||
    !isDeepStrictEqual(pod.metadata.labels, old.metadata.labels));

const placeable = ({ spec, metadata }: Pod): unknown[] => [spec, metadata.labels];

const parts = (key: string): [namespace: string, name: string] => key.split('/') as [string, string];
