/**
 * Decides which Pods a rolling update deletes, so that updated Pods replace them. The functions are pure.
 * Source: updateStatefulSet and updateStatefulSetAfterInvariantEstablished of pkg/controller/statefulset/stateful_set_control.go of v1.33
 * (behavior). A Pod is available after it has been ready for minReadySeconds, as documented, with both OrderedReady and Parallel.
 */

import type { Pod } from '../../api/generated/types.ts';
import { resolveAmount } from '../../api/int-or-percent.ts';
import {
  isRunningAndAvailable,
  isTerminating,
  type Members,
  ordinalOf,
  revisionOf,
  startOf,
  wantedReplicas,
} from './members.ts';

/** Returns the Pods to delete, the highest ordinal first. `leaving`: Pods that are deleted for another reason. */
export function outdatedPods(members: Members, leaving: ReadonlySet<Pod>): Pod[] {
  const strategy = members.set.spec?.updateStrategy;
  if (strategy?.type === 'OnDelete') return [];
  const { partition = 0, maxUnavailable } = strategy?.rollingUpdate ?? {};
  return maxUnavailable === undefined
    ? nextPod(members, leaving, partition)
    : nextPods(members, leaving, partition, maxUnavailable);
}

/** Returns the outdated Pod with the highest ordinal, or none until all Pods with higher ordinals are available. */
function nextPod(members: Members, leaving: ReadonlySet<Pod>, partition: number): Pod[] {
  for (let index = wantedReplicas(members.set) - 1; index >= partition; index--) {
    const pod = members.at(index);
    if (pod === undefined || isLeaving(pod, leaving)) return [];
    if (isOutdated(members, pod)) return [pod];
    if (!isRunningAndAvailable(members.set, pod, members.now)) return [];
  }
  return [];
}

/** Returns as many Pods as maxUnavailable permits in addition to the Pods that are not available. */
function nextPods(
  members: Members,
  leaving: ReadonlySet<Pod>,
  partition: number,
  maxUnavailable: number | string,
): Pod[] {
  const { set, replicas, now } = members;
  const available = replicas.filter((pod) => !isLeaving(pod, leaving) && isRunningAndAvailable(set, pod, now));
  const allowed = amountOf(maxUnavailable, wantedReplicas(set)) - (wantedReplicas(set) - available.length);
  const first = startOf(set) + partition;
  return replicas
    .filter((pod) => (ordinalOf(set, pod) ?? 0) >= first && isOutdated(members, pod) && !isLeaving(pod, leaving))
    .reverse()
    .slice(0, Math.max(0, allowed));
}

const isLeaving = (pod: Pod, leaving: ReadonlySet<Pod>): boolean => isTerminating(pod) || leaving.has(pod);

const isOutdated = ({ revisions }: Members, pod: Pod): boolean => revisionOf(pod) !== revisions.update.metadata.name;

/** Percentages are rounded down. The result is at least 1, so that the update can progress. */
function amountOf(value: number | string, of: number): number {
  return Math.max(1, resolveAmount(value, of, 'down'));
}
