/**
 * Computes the status of a DaemonSet. The functions are pure.
 * Source: updateDaemonSetStatus of pkg/controller/daemon/daemon_controller.go of v1.33 (behavior).
 */
import type { DaemonSetStatus } from '../../api/generated/types.ts';
import { defined } from '../../machinery/drop-undefined.ts';
import type { Millis } from '../../machinery/time.ts';
import { availableAt, isPodReady } from '../ownership/pod-state.ts';
import { type Daemons, isAvailable, isUpdated, olderFirst } from './daemons.ts';

export function statusOf(daemons: Daemons): DaemonSetStatus {
  const { daemonSet, hash, nodes } = daemons;
  const wanted = nodes.filter(({ placement }) => placement.shouldRun);
  const oldest = wanted.flatMap(({ pods }) => [...pods].sort(olderFirst).slice(0, 1));
  const ready = oldest.filter(isPodReady);
  const available = ready.filter((pod) => isAvailable(daemons, pod)).length;
  const optional = {
    updatedNumberScheduled: oldest.filter((pod) => isUpdated(pod, hash)).length,
    numberAvailable: available,
    numberUnavailable: wanted.length - available,
  };
  return {
    currentNumberScheduled: oldest.length,
    numberMisscheduled: nodes.filter(({ placement, pods }) => !placement.shouldRun && pods.length > 0).length,
    desiredNumberScheduled: wanted.length,
    numberReady: ready.length,
    observedGeneration: daemonSet.metadata.generation ?? 0,
    ...Object.fromEntries(Object.entries(optional).filter(([, count]) => count > 0)),
    ...defined({ collisionCount: daemonSet.status?.collisionCount }),
  };
}

/** Returns when the next ready Pod becomes available; undefined if there is none. */
export function nextAvailableAt({ daemonSet, nodes, now }: Daemons): Millis | undefined {
  const seconds = daemonSet.spec?.minReadySeconds ?? 0;
  let next: Millis | undefined;
  for (const pod of nodes.flatMap(({ pods }) => pods)) {
    const at = availableAt(pod, seconds);
    if (at !== undefined && at > now && (next === undefined || at < next)) next = at;
  }
  return next;
}
