/**
 * Computes the status of a ReplicaSet or ReplicationController. The functions are pure.
 * Source: pkg/controller/replicaset/replica_set_utils.go of v1.33 (behavior).
 */
import type { Pod, ReplicaSetCondition, ReplicaSetStatus } from '../../api/generated/types.ts';
import { defined } from '../../machinery/drop-undefined.ts';
import { formatTime, type Millis } from '../../machinery/time.ts';
import { availableAt } from '../ownership/pod-state.ts';
import { type ReplicaOwner, wantedReplicas } from './replica-owner.ts';

export interface StatusInput {
  owner: ReplicaOwner;
  /** The active Pods that the owner controlled before this reconcile created or deleted Pods. */
  pods: readonly Pod[];
  /** The message of the error of a failed create or delete; undefined if none failed. */
  failure: string | undefined;
  now: Millis;
}

/** Omits counts of 0 except `replicas`, as upstream's JSON does. */
export function statusOf({ owner, pods, failure, now }: StatusInput): ReplicaSetStatus {
  const minReadySeconds = owner.spec?.minReadySeconds ?? 0;
  const templateLabels = Object.entries(owner.spec?.template?.metadata?.labels ?? {});
  let [fullyLabeled, ready, available] = [0, 0, 0];
  for (const pod of pods) {
    const labels = pod.metadata.labels ?? {};
    if (templateLabels.every(([key, value]) => labels[key] === value)) fullyLabeled += 1;
    const since = availableAt(pod, minReadySeconds);
    if (since === undefined) continue;
    ready += 1;
    if (since <= now) available += 1;
  }
  const conditions = conditionsOf(owner, pods.length, failure, now);
  return defined({
    replicas: pods.length,
    fullyLabeledReplicas: fullyLabeled || undefined,
    readyReplicas: ready || undefined,
    availableReplicas: available || undefined,
    observedGeneration: owner.metadata.generation,
    conditions: conditions.length === 0 ? undefined : conditions,
  });
}

/** Returns when the next ready Pod becomes available; undefined if there is none. */
export function nextAvailableAt(owner: ReplicaOwner, pods: readonly Pod[], now: Millis): Millis | undefined {
  const minReadySeconds = owner.spec?.minReadySeconds ?? 0;
  if (minReadySeconds === 0) return undefined;
  const times = pods.map((pod) => availableAt(pod, minReadySeconds) ?? 0).filter((time) => time > now);
  return times.length === 0 ? undefined : Math.min(...times);
}

/** Sets or removes the condition ReplicaFailure. An existing ReplicaFailure is not updated. */
function conditionsOf(
  owner: ReplicaOwner,
  count: number,
  failure: string | undefined,
  now: Millis,
): ReplicaSetCondition[] {
  const present = owner.status?.conditions ?? [];
  const isFailure = ({ type }: ReplicaSetCondition): boolean => type === 'ReplicaFailure';
  if (failure === undefined) return present.filter((each) => !isFailure(each));
  if (present.some(isFailure)) return present;
  const reason = count < wantedReplicas(owner) ? 'FailedCreate' : 'FailedDelete';
  const lastTransitionTime = formatTime(now);
  return [...present, { type: 'ReplicaFailure', status: 'True', lastTransitionTime, reason, message: failure }];
}
