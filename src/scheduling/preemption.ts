/**
 * Makes room for a Pod by preempting Pods of lower priority: chooses the node and the victims. The functions are pure.
 * Source: "Pod Priority and Preemption" of the v1.33 documentation; the plugin DefaultPreemption of v1.33 (behavior).
 */
import { isMirrorPod } from '../api/core/v1/pod/mirror.ts';
import type { Node, Pod, PodDisruptionBudget } from '../api/generated/types.ts';
import { violating } from './disruption-budgets.ts';
import { fitBeside } from './fit-with-others.ts';
import type { PodsOnNode } from './node-pods.ts';
import { type PodRule, podRuleOf } from './pod-rules.ts';
import type { ClusterFacts } from './schedule.ts';
import { claimProblem, type VolumeFacts } from './volume-claims.ts';

/** A node on which the Pod fits after other Pods have terminated. */
export interface Room {
  node: string;
  /** The Pods to delete; empty if the Pods that are already terminating free enough resources. */
  victims: Pod[];
}

export const priorityOf = ({ spec }: Pod): number => spec?.priority ?? 0;

export const importantFirst = (a: Pod, b: Pod): number =>
  priorityOf(b) - priorityOf(a) ||
  (a.metadata.creationTimestamp ?? '').localeCompare(b.metadata.creationTimestamp ?? '');

/**
 * Chooses the node on which preemption costs least. `podsOn`: as for schedule(). Returns undefined if no preemption lets the Pod fit, or
 * if the Pod's preemptionPolicy is Never. PodDisruptionBudgets decide first between victims and between nodes, but do not prevent the
 * preemption.
 */
export function roomFor(
  pod: Pod,
  nodes: readonly Node[],
  podsOn: (node: string) => PodsOnNode,
  { volumes, budgets = [], namespaceLabels = () => undefined }: ClusterFacts = {},
): Room | undefined {
  if (pod.spec?.preemptionPolicy === 'Never') return undefined;
  if (volumes !== undefined && claimProblem(pod, volumes) !== undefined) return undefined;
  const rule = podRuleOf(pod, nodes, podsOn, namespaceLabels);
  let best: (Room & Cost) | undefined;
  for (const node of nodes) {
    const found = victimsOn(pod, node, [...podsOn(node.metadata.name).pods], { volumes, rule, budgets });
    if (found === undefined) continue;
    const { victims, violations } = found;
    const priced = { node: node.metadata.name, victims, ...costOf(victims, violations) };
    if (best === undefined || compareRooms(priced, best) < 0) best = priced;
  }
  return best && { node: best.node, victims: best.victims };
}

interface Limits {
  volumes: VolumeFacts | undefined;
  rule: PodRule | undefined;
  budgets: readonly PodDisruptionBudget[];
}

/**
 * Returns the Pods to delete so that `pod` fits on the node, and how many of these deletions violate a budget. Returns undefined if
 * deleting all preemptible Pods does not suffice. Pods whose deletion would violate a budget are kept before others.
 */
function victimsOn(
  pod: Pod,
  node: Node,
  podsOnNode: readonly Pod[],
  { volumes, rule, budgets }: Limits,
): { victims: Pod[]; violations: number } | undefined {
  // The deletion of a mirror Pod does not stop the static Pod.
  const isPreemptible = (other: Pod): boolean => priorityOf(other) < priorityOf(pod) && !isMirrorPod(other);
  const lower = podsOnNode.filter(isPreemptible).sort(importantFirst);
  const add = fitBeside(
    pod,
    node,
    podsOnNode.filter((other) => !isPreemptible(other)),
    volumes,
  );
  const ruled = rule?.beside(node, lower);
  if (add === undefined || (rule !== undefined && ruled === undefined)) return undefined;
  const canStay = (other: Pod): boolean => {
    if (ruled?.fits(other) === false || !add(other)) return false;
    ruled?.add(other);
    return true;
  };
  const candidates = lower.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const guarded = violating(candidates, budgets);
  const keptFirst = [...guarded, ...candidates.filter((other) => !guarded.has(other))];
  const victims = keptFirst.filter((other) => !canStay(other));
  return { victims: victims.sort(importantFirst), violations: victims.filter((other) => guarded.has(other)).length };
}

/**
 * `violations`: the number of victims whose deletion violates a PodDisruptionBudget. `highest` and `sum`: the maximum and the sum of the
 * victims' priorities.
 */
interface Cost {
  violations: number;
  highest: number;
  sum: number;
  count: number;
}

function costOf(victims: readonly Pod[], violations: number): Cost {
  const cost = { violations, highest: Number.NEGATIVE_INFINITY, sum: 0, count: victims.length };
  for (const victim of victims) {
    cost.highest = Math.max(cost.highest, priorityOf(victim));
    cost.sum += priorityOf(victim);
  }
  return cost;
}

function compareRooms(a: Room & Cost, b: Room & Cost): number {
  const order = (x: number, y: number): number => (x === y ? 0 : x < y ? -1 : 1);
  return (
    order(a.violations, b.violations) ||
    order(a.highest, b.highest) ||
    order(a.sum, b.sum) ||
    order(a.count, b.count) ||
    a.node.localeCompare(b.node)
  );
}
