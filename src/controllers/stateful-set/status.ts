/**
 * Computes the status of a StatefulSet. The functions are pure. Source: pkg/controller/statefulset/stateful_set_control.go and
 * stateful_set_utils.go of v1.33 (behavior).
 */
import type { StatefulSetStatus } from '../../api/generated/types.ts';
import type { Millis } from '../../machinery/time.ts';
import { availableAt } from '../ownership/pod-state.ts';
import { countOf, isRunningAndAvailable, isRunningAndReady, type Members, wantedReplicas } from './members.ts';

export function statusOf(members: Members): StatefulSetStatus {
  const { set, revisions, replicas, condemned, now } = members;
  const pods = [...replicas, ...condemned];
  const ready = pods.filter(isRunningAndReady);
  const { current, update } = revisions;
  const updated = countOf(members, update);
  const wanted = wantedReplicas(set);
  const isRolling = set.spec?.updateStrategy?.type !== 'OnDelete';
  const isComplete = isRolling && [updated, ready.length, pods.length].every((count) => count === wanted);
  const optional = {
    readyReplicas: ready.length,
    currentReplicas: isComplete ? updated : countOf(members, current),
    updatedReplicas: updated,
  };
  return {
    observedGeneration: set.metadata.generation ?? 0,
    replicas: pods.length,
    availableReplicas: ready.filter((pod) => isRunningAndAvailable(set, pod, now)).length,
    ...Object.fromEntries(Object.entries(optional).filter(([, count]) => count > 0)),
    currentRevision: (isComplete ? update : current).metadata.name,
    updateRevision: update.metadata.name,
    collisionCount: set.status?.collisionCount ?? 0,
  };
}

/** Returns when the next ready Pod becomes available; undefined if there is none. */
export function nextAvailableAt({ set, replicas, condemned, now }: Members): Millis | undefined {
  const seconds = set.spec?.minReadySeconds ?? 0;
  const times = [...replicas, ...condemned].map((pod) => availableAt(pod, seconds) ?? 0).filter((at) => at > now);
  return times.length === 0 ? undefined : times.reduce((a, b) => Math.min(a, b));
}
