/**
 * Determines the order in which Pods are deleted when there are too many replicas. The functions are pure.
 * Source: ActivePodsWithRanks of pkg/controller/controller_utils.go and getPodsToDelete of pkg/controller/replicaset/replica_set.go of
 * v1.33 (behavior, with the feature gates PodDeletionCost and LogarithmicScaleDown); "ReplicaSet" of the v1.33 documentation, scaling down.
 */
import { deletionCost } from '../../api/core/v1/pod/deletion-cost.ts';
import type { Pod } from '../../api/generated/types.ts';
import { uidOf } from '../../machinery/meta.ts';
import { type Millis, parseTime } from '../../machinery/time.ts';
import { isPodActive, isPodReady, readyCondition } from '../ownership/pod-state.ts';

const NANOS_PER_MILLI = 1e6;
const PHASE_ORDER: Readonly<Record<string, number>> = { Pending: 0, Unknown: 1, Running: 2 };

interface Rank {
  pod: Pod;
  uid: string;
  isAssigned: boolean;
  phase: number;
  isReady: boolean;
  cost: number;
  /** The number of related Pods on the same node. */
  related: number;
  /** 0 if unknown. */
  readySince: Millis;
  restarts: readonly [apps: number, sidecars: number];
  /** 0 if unknown. */
  created: Millis;
}

/** Returns the `count` Pods to delete first. `related`: the Pods of all ReplicaSets with the same controller, including these Pods. */
export function podsToDelete(pods: readonly Pod[], related: Iterable<Pod>, count: number, now: Millis): Pod[] {
  if (count >= pods.length) return [...pods];
  const byNode = new Map<string, number>();
  for (const pod of related) {
    const node = nodeOf(pod);
    if (isPodActive(pod)) byNode.set(node, (byNode.get(node) ?? 0) + 1);
  }
  const ranks = pods.map((pod) => rankOf(pod, byNode.get(nodeOf(pod)) ?? 0));
  ranks.sort((a, b) => compare(a, b, now));
  return ranks.slice(0, count).map(({ pod }) => pod);
}

const nodeOf = ({ spec }: Pod): string => spec?.nodeName ?? '';

const rankOf = (pod: Pod, related: number): Rank => ({
  pod,
  uid: uidOf(pod),
  isAssigned: nodeOf(pod) !== '',
  phase: PHASE_ORDER[pod.status?.phase ?? ''] ?? 0,
  isReady: isPodReady(pod),
  cost: deletionCost(pod) ?? 0,
  related,
  readySince: isPodReady(pod) ? (parseTime(readyCondition(pod)?.lastTransitionTime) ?? 0) : 0,
  restarts: maxRestarts(pod),
  created: parseTime(pod.metadata.creationTimestamp) ?? 0,
});

/** Returns a negative number if `a` is deleted before `b`. */
function compare(a: Rank, b: Rank, now: Millis): number {
  return (
    Number(a.isAssigned) - Number(b.isAssigned) ||
    a.phase - b.phase ||
    Number(a.isReady) - Number(b.isReady) ||
    a.cost - b.cost ||
    b.related - a.related ||
    (a.isReady && b.isReady ? laterFirst(a, b, 'readySince', now) : 0) ||
    b.restarts[0] - a.restarts[0] ||
    b.restarts[1] - a.restarts[1] ||
    laterFirst(a, b, 'created', now)
  );
}

/** Orders a Pod with an unknown time first, then later times first. If the ages have the same binary logarithm, the UID decides. */
function laterFirst(a: Rank, b: Rank, what: 'readySince' | 'created', now: Millis): number {
  const [first, second] = [a[what], b[what]];
  if (first === second) return 0;
  if (first === 0 || second === 0) return first - second;
  return logarithm(now - first) - logarithm(now - second) || (a.uid < b.uid ? -1 : 1);
}

const logarithm = (age: Millis): number => (age > 0 ? Math.trunc(Math.log2(age * NANOS_PER_MILLI)) : -1);

function maxRestarts({ spec, status }: Pod): [apps: number, sidecars: number] {
  const sidecars = new Set<string>();
  for (const { name, restartPolicy } of spec?.initContainers ?? []) if (restartPolicy === 'Always') sidecars.add(name);
  const most = (statuses: readonly { restartCount: number }[]): number =>
    statuses.reduce((max, { restartCount }) => Math.max(max, restartCount), 0);
  return [
    most(status?.containerStatuses ?? []),
    most((status?.initContainerStatuses ?? []).filter(({ name }) => sidecars.has(name))),
  ];
}
