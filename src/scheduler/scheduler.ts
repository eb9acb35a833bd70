/**
 * The scheduler: gives each Pod without a node one, as soon as it appears.
 *
 * Boundary: src/scheduling decides; this folder watches, binds, and tells why a Pod cannot be placed.
 *
 * Invariants:
 *  1. A Pod is bound at most once at a time; what was decided counts as bound at once (assumed), so the next decision
 *     never gives the same room away.
 *  2. A Pod that fits nowhere is tried again when a node or a bound Pod changes so that it might fit, not by time.
 *
 * Source: kube-scheduler of v1.33 (behaviour, Events and condition).
 */
import { isDeepStrictEqual } from 'node:util';
import type { Binding, Node, Pod, PodCondition } from '../api/generated/types.ts';
import type { Client } from '../client/client.ts';
import { createEventRecorder } from '../client/events.ts';
import { createInformer } from '../client/informer.ts';
import { createWorkQueue } from '../client/work-queue.ts';
import type { ResourceRef } from '../machinery/meta.ts';
import { isApiError } from '../machinery/status.ts';
import { formatTime } from '../machinery/time.ts';
import type { Log, Timers } from '../platform/platform.ts';
import { schedule } from '../scheduling/schedule.ts';
import { mayFitBetter } from './node-changes.ts';

export interface SchedulerOptions {
  client: Client;
  timers: Timers;
  log: Log;
  /** Only Pods with this spec.schedulerName; 'default-scheduler'. */
  schedulerName: string;
  signal: AbortSignal;
}

const PODS: ResourceRef = { group: '', version: 'v1', resource: 'pods' };
const NODES: ResourceRef = { group: '', version: 'v1', resource: 'nodes' };

const keyOf = ({ metadata }: Pod): string => `${metadata.namespace}/${metadata.name}`;
const hasEnded = (pod: Pod): boolean => pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';

/** Resolves once every Pod that was there has been looked at; goes on until the signal aborts. */
export async function startScheduler(options: SchedulerOptions): Promise<void> {
  const { client, timers, log, schedulerName, signal } = options;
  const podClient = client.resource<Pod>(PODS);
  const events = createEventRecorder(client, { component: schedulerName, timers, log, signal });
  /** Bound by us, and not yet seen so. By UID. */
  const assumed = new Map<string, Pod>();
  /** Keys of Pods that fitted nowhere when last tried. */
  const unschedulable = new Set<string>();
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
    else if (!isOurs(pod)) unschedulable.delete(keyOf(pod));
  };
  const retryUnschedulable = (): void => {
    for (const key of unschedulable) queue.add(key);
  };

  const pods = createInformer(
    podClient,
    { log, timers, signal },
    {
      added: consider,
      updated(pod, old) {
        // The status of a Pod, which is written often, does not change where it fits.
        if (!old.spec?.nodeName && !isDeepStrictEqual(pod.spec, old.spec)) consider(pod);
        if (hasEnded(pod) && !hasEnded(old)) retryUnschedulable();
      },
      deleted(pod) {
        assumed.delete(pod.metadata.uid as string);
        unschedulable.delete(keyOf(pod));
        if (pod.spec?.nodeName) retryUnschedulable();
      },
    },
  );
  const nodes = createInformer(
    client.resource<Node>(NODES),
    { log, timers, signal },
    {
      added: retryUnschedulable,
      updated(node, old) {
        if (mayFitBetter(node, old)) retryUnschedulable();
      },
    },
  );
  const queue = createWorkQueue({ name: 'scheduler', process: scheduleOne, log, timers, signal });

  async function scheduleOne(key: string): Promise<void> {
    const [namespace, name] = key.split('/') as [string, string];
    const pod = pods.get(namespace, name);
    if (pod === undefined || !isOurs(pod) || assumed.has(pod.metadata.uid as string)) return;
    const bound = pods.list().filter((other) => other.spec?.nodeName && !hasEnded(other));
    const placement = schedule(pod, nodes.list(), [...bound, ...assumed.values()]);
    if ('node' in placement) {
      unschedulable.delete(key);
      await bind(pod, placement.node);
      return;
    }
    unschedulable.add(key);
    events.event(pod, 'Warning', 'FailedScheduling', placement.message);
    await tellUnschedulable(pod, placement.message);
  }

  async function bind(pod: Pod, node: string): Promise<void> {
    const { namespace, name, uid } = pod.metadata as { namespace: string; name: string; uid: string };
    assumed.set(uid, { ...pod, spec: { ...pod.spec, nodeName: node } } as Pod);
    const target = { apiVersion: 'v1', kind: 'Node', name: node };
    const binding: Binding = { apiVersion: 'v1', kind: 'Binding', metadata: { name, namespace, uid }, target };
    try {
      await podClient.createSubresource(name, namespace, 'binding', binding);
    } catch (error) {
      assumed.delete(uid);
      // Gone, or bound by someone else: the informer will tell, or has told.
      if (isApiError(error, 'NotFound') || isApiError(error, 'Conflict')) return;
      throw error;
    }
    events.event(pod, 'Normal', 'Scheduled', `Successfully assigned ${namespace}/${name} to ${node}`);
  }

  async function tellUnschedulable(pod: Pod, message: string): Promise<void> {
    const condition: PodCondition = {
      type: 'PodScheduled',
      status: 'False',
      reason: 'Unschedulable',
      message,
      lastTransitionTime: formatTime(timers.now()),
    };
    const old = pod.status?.conditions?.find((each) => each.type === 'PodScheduled');
    if (old?.status === 'False' && old.reason === condition.reason && old.message === message) return;
    if (old?.status === 'False') condition.lastTransitionTime = old.lastTransitionTime;
    const { name, namespace } = pod.metadata;
    try {
      const change = { status: { conditions: [condition] } };
      await podClient.patch(name, namespace, 'application/strategic-merge-patch+json', change, 'status');
    } catch (error) {
      if (!isApiError(error, 'NotFound')) throw error;
    }
  }

  await Promise.all([pods.synced, nodes.synced]);
  ready = true;
  const oldestFirst = pods.list().sort((a, b) => createdAt(a).localeCompare(createdAt(b)));
  for (const pod of oldestFirst) consider(pod);
}

const createdAt = ({ metadata }: Pod): string => metadata.creationTimestamp ?? '';
