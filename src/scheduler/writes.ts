/** The writes of the scheduler: bindings, selected nodes of claims, preemptions, and the condition PodScheduled. */
import type { Binding, PersistentVolumeClaim, Pod, PodCondition } from '../api/generated/types.ts';
import { PERSISTENT_VOLUME_CLAIMS, PODS } from '../api/resources.ts';
import type { Client, ResourceClient } from '../client/client.ts';
import type { EventRecorder } from '../client/events.ts';
import { deleteWithStatus } from '../client/unless-changed.ts';
import { isApiError } from '../machinery/status.ts';
import { formatTime } from '../machinery/time.ts';
import type { Timers } from '../platform/platform.ts';
import { isBound, SELECTED_NODE } from '../scheduling/volume-claims.ts';

const STRATEGIC_MERGE = 'application/strategic-merge-patch+json';

export interface SchedulerWrites {
  /**
   * Resolves with false if the Pod no longer exists or can no longer be bound, for example because another client has bound it: the
   * informer will report this change. Rejects with any other error.
   */
  bind(pod: Pod, node: string): Promise<boolean>;
  /**
   * Annotates the claim with the node, so that the claim is bound to a volume for this node. Does nothing if the claim is bound or already
   * has this annotation.
   */
  selectNode(claim: PersistentVolumeClaim, node: string): Promise<void>;
  /**
   * Sets the condition DisruptionTarget, deletes the victim with its own grace period, and records an Event. Records no Event if the victim
   * no longer exists or has been replaced.
   */
  preempt(victim: Pod, by: Pod, node: string): Promise<void>;
  /**
   * Sets the condition PodScheduled to False, and status.nominatedNodeName. Does nothing if the status already contains both, or if the Pod
   * no longer exists. `nominatedNode`: the node on which the Pod will fit after other Pods have terminated; undefined if there is none.
   */
  reportUnschedulable(pod: Pod, message: string, nominatedNode: string | undefined): Promise<void>;
}

interface Writer {
  pods: ResourceClient<Pod>;
  claims: ResourceClient<PersistentVolumeClaim>;
  events: EventRecorder;
  timers: Timers;
  schedulerName: string;
}

export function schedulerWrites(options: {
  client: Client;
  events: EventRecorder;
  timers: Timers;
  schedulerName: string;
}): SchedulerWrites {
  const { client, ...rest } = options;
  const pods = client.resource<Pod>(PODS);
  const claims = client.resource<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIMS);
  const writer: Writer = { ...rest, pods, claims };
  return {
    bind: (pod, node) => bind(writer, pod, node),
    selectNode: (claim, node) => selectNode(writer, claim, node),
    preempt: (victim, by, node) => preempt(writer, victim, by, node),
    reportUnschedulable: (pod, message, nominatedNode) => reportUnschedulable(writer, pod, message, nominatedNode),
  };
}

async function bind({ pods, events }: Writer, pod: Pod, node: string): Promise<boolean> {
  const { namespace, name, uid } = pod.metadata as { namespace: string; name: string; uid: string };
  const target = { apiVersion: 'v1', kind: 'Node', name: node };
  const binding: Binding = { apiVersion: 'v1', kind: 'Binding', metadata: { name, namespace, uid }, target };
  try {
    await pods.createSubresource(name, namespace, 'binding', binding);
  } catch (error) {
    if (isApiError(error, 'NotFound') || isApiError(error, 'Conflict')) return false;
    throw error;
  }
  events.event(pod, 'Normal', 'Scheduled', `Successfully assigned ${namespace}/${name} to ${node}`);
  return true;
}

async function selectNode({ claims }: Writer, claim: PersistentVolumeClaim, node: string): Promise<void> {
  const { metadata } = claim;
  if (isBound(claim) || metadata.annotations?.[SELECTED_NODE] === node) return;
  const change = { metadata: { annotations: { [SELECTED_NODE]: node } } };
  await claims.patch(metadata.name, metadata.namespace, 'application/merge-patch+json', change);
}

async function preempt(writer: Writer, victim: Pod, by: Pod, node: string): Promise<void> {
  const { pods, events, timers, schedulerName } = writer;
  const condition: PodCondition = {
    type: 'DisruptionTarget',
    status: 'True',
    lastTransitionTime: formatTime(timers.now()),
    reason: 'PreemptionByScheduler',
    message: `${schedulerName}: preempting to accommodate a higher priority pod`,
  };
  if (await deleteWithStatus(pods, victim, { conditions: [condition] }))
    events.event(victim, 'Normal', 'Preempted', `Preempted by pod ${by.metadata.uid} on node ${node}`);
}

async function reportUnschedulable(
  { pods, timers }: Writer,
  pod: Pod,
  message: string,
  nominatedNode: string | undefined,
): Promise<void> {
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
    await pods.patch(name, namespace, STRATEGIC_MERGE, change, 'status');
  } catch (error) {
    if (!isApiError(error, 'NotFound')) throw error;
  }
}
