/**
 * Determines the states of Pods that workload controllers count.
 * Source: pkg/api/v1/pod/util.go and pkg/controller/controller_utils.go of v1.33 (behavior).
 */
import { hasEnded } from '../../api/core/v1/pod/status/final-phase.ts';
import type { Pod, PodCondition } from '../../api/generated/types.ts';
import { type Millis, parseTime } from '../../machinery/time.ts';

export const isPodActive = (pod: Pod): boolean => !hasEnded(pod) && pod.metadata.deletionTimestamp === undefined;

export const readyCondition = ({ status }: Pod): PodCondition | undefined =>
  status?.conditions?.find(({ type }) => type === 'Ready');

export const isPodReady = (pod: Pod): boolean => readyCondition(pod)?.status === 'True';

/** Returns when a ready Pod has been ready for `minReadySeconds`; 0 if `minReadySeconds` is 0; undefined if the Pod is not ready. */
export function availableAt(pod: Pod, minReadySeconds: number): Millis | undefined {
  if (!isPodReady(pod)) return undefined;
  return minReadySeconds === 0 ? 0 : (parseTime(readyCondition(pod)?.lastTransitionTime) ?? 0) + minReadySeconds * 1000;
}

export const isPodAvailable = (pod: Pod, minReadySeconds: number, now: Millis): boolean =>
  (availableAt(pod, minReadySeconds) ?? Number.POSITIVE_INFINITY) <= now;
