/**
 * Selects the Pods that are deleted because no node agent deletes them, and computes their last status. The functions are pure.
 * Source: pkg/controller/podgc/gc_controller.go of v1.33 (behavior and wording); the specification of defer containers (Deferred).
 */
import { isNodeReady } from '../../api/core/v1/node/ready.ts';
import { isMirrorPod } from '../../api/core/v1/pod/mirror.ts';
import { undoneEntries, undoneNames } from '../../api/core/v1/pod/status/deferred.ts';
import { hasEnded } from '../../api/core/v1/pod/status/final-phase.ts';
import type { ContainerStatus, Node, Pod, PodCondition, PodStatus } from '../../api/generated/types.ts';
import { formatTime, type Millis } from '../../machinery/time.ts';

/** An administrator adds this taint to a node that is powered off, and removes it when the node is back. */
const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service';

/** Why a Pod is deleted, as in the label `reason` of upstream's metrics. */
export type Cause = 'orphaned' | 'terminated' | 'out-of-service' | 'unscheduled';

/** Whether terminating Pods on the node need not wait for the node's agent. */
export const isOutOfService = (node: Node): boolean =>
  (node.spec?.taints ?? []).some(({ key }) => key === OUT_OF_SERVICE) && !isNodeReady(node);

export const isBeingDeleted = ({ metadata }: Pod): boolean => metadata.deletionTimestamp !== undefined;

/** Whether the Pod is being deleted and is not bound. Only finalizers keep this Pod, because no agent has to end it. */
export const isUnscheduledTerminating = (pod: Pod): boolean => isBeingDeleted(pod) && !pod.spec?.nodeName;

/** Whether only finalizers keep the Pod, so that another forced deletion would change nothing. */
export const isForcedAlready = (pod: Pod): boolean =>
  isBeingDeleted(pod) && pod.metadata.deletionGracePeriodSeconds === 0 && hasEnded(pod);

/** Whether the Pod has ended. Mirror Pods, which their nodes manage, and Pods that are being deleted do not count. */
export const isTerminated = (pod: Pod): boolean => hasEnded(pod) && !isMirrorPod(pod) && !isBeingDeleted(pod);

/** Returns the terminated Pods in excess of the limit: first the Pods that their nodes evicted, then the oldest. */
export const tooMany = (terminated: Iterable<Pod>, limit: number): Pod[] => {
  const ordered = [...terminated].sort(evictedFirst);
  return ordered.slice(0, Math.max(0, ordered.length - limit));
};

function evictedFirst(a: Pod, b: Pod): number {
  const wasEvicted = ({ status }: Pod): number => Number(status?.reason === 'Evicted');
  const created = ({ metadata }: Pod): string => metadata.creationTimestamp ?? '';
  return (
    wasEvicted(b) - wasEvicted(a) ||
    created(a).localeCompare(created(b)) ||
    a.metadata.name.localeCompare(b.metadata.name)
  );
}

/** Returns the status to write before the deletion; undefined if the phase is final already. */
export function lastStatus(pod: Pod, cause: Cause, now: Millis): PodStatus | undefined {
  if (hasEnded(pod)) return undefined;
  const conditions = cause === 'orphaned' ? [podGcCondition(pod, now)] : [];
  const isNodeLost = cause === 'orphaned' || cause === 'out-of-service';
  const deferred = isNodeLost ? deferredCondition(pod, now) : undefined;
  if (deferred !== undefined) conditions.push(deferred);
  return conditions.length === 0 ? { phase: 'Failed' } : { phase: 'Failed', conditions };
}

const conditionOf = ({ status }: Pod, type: string): PodCondition | undefined =>
  status?.conditions?.find((each) => each.type === type);

/** Keeps the lastTransitionTime if another component has already set the condition to True. */
function podGcCondition(pod: Pod, now: Millis): PodCondition {
  const before = conditionOf(pod, 'DisruptionTarget');
  const since = before?.status === 'True' ? before.lastTransitionTime : undefined;
  return {
    type: 'DisruptionTarget',
    status: 'True',
    lastTransitionTime: since ?? formatTime(now),
    reason: 'DeletionByPodGC',
    message: 'PodGC: node no longer exists',
  };
}

const hasBegun = ({ state, lastState, restartCount }: ContainerStatus): boolean =>
  state?.running !== undefined ||
  state?.terminated !== undefined ||
  lastState?.terminated !== undefined ||
  restartCount > 0;

function deferredCondition(pod: Pod, now: Millis): PodCondition | undefined {
  const { spec, status } = pod;
  const before = conditionOf(pod, 'Deferred');
  if (before?.reason !== undefined && before.reason !== 'DeferContainersRunning') return undefined;
  const ends = new Map(
    (status?.deferContainerStatuses ?? []).flatMap(({ name, state }) =>
      state?.terminated ? [[name, state.terminated] as const] : [],
    ),
  );
  const names = (spec?.deferContainers ?? []).map(({ name }) => name);
  const left = names.filter((name) => !ends.has(name));
  if (left.length === 0) return undefined;
  const { incomplete, failed } = undoneNames(
    names.flatMap((name) => {
      const { reason = '', message = '' } = ends.get(name) ?? {};
      return ends.has(name) ? { name, reason, message } : [];
    }),
  );
  const lost = {
    reason: 'NodeLost',
    message: undoneEntries(
      names.filter((name) => left.includes(name) || incomplete.includes(name)),
      failed,
    ),
  };
  const skipped = { reason: 'DeferContainersSkipped', message: 'no container of the Pod had started' };
  const begun = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])].some(hasBegun);
  const since = before?.status === 'False' ? before.lastTransitionTime : undefined;
  const condition = { type: 'Deferred', status: 'False', lastTransitionTime: since ?? formatTime(now) };
  return { ...condition, ...(begun ? lost : skipped) };
}
