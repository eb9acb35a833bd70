/**
 * Checks whether a Pod can run on a node. The reasons come from the first filter that rejects the node.
 * Source: the filter plugins of v1.33's default scheduler profile, in their order (behavior and wording).
 */
import type { Node, Pod } from '../api/generated/types.ts';
import { addQuantities, compareQuantities, quantityValue } from '../machinery/quantity.ts';
import { hostPortsTakenOn } from './host-ports.ts';
import type { PodsOnNode } from './node-pods.ts';
import { allocatableOf, wantedBy } from './node-resources.ts';
import { stateKeys, UNSCHEDULABLE } from './node-taints.ts';
import { matchesNodeSelection, tolerates, untoleratedTaint } from './requirements.ts';

export type Feasibility = { fits: true } | { fits: false; reasons: string[] };

type Filter = (pod: Pod, node: Node, onNode: PodsOnNode) => string[];

/**
 * Returns whether the Pod fits on the node, and otherwise the reasons of the first filter that rejects the node. `onNode`: the other Pods
 * bound to the node.
 */
export function feasible(pod: Pod, node: Node, onNode: PodsOnNode): Feasibility {
  for (const filter of filters) {
    const reasons = filter(pod, node, onNode);
    if (reasons.length > 0) return { fits: false, reasons };
  }
  return { fits: true };
}

const unschedulableTaint = { key: UNSCHEDULABLE, effect: 'NoSchedule' };

const schedulable: Filter = (pod, node) =>
  node.spec?.unschedulable !== true ||
  (pod.spec?.tolerations ?? []).some((toleration) => tolerates(toleration, unschedulableTaint))
    ? []
    : ['node(s) were unschedulable'];

const nodeName: Filter = (pod, node) =>
  !pod.spec?.nodeName || pod.spec.nodeName === node.metadata.name
    ? []
    : ["node(s) didn't match the requested node name"];

/**
 * Also checks taints that the node's state requires but that no controller has set yet. For example, no Pod is bound to a node that has
 * just begun to shut down.
 */
const taints: Filter = (pod, node) => {
  const ofState = stateKeys(node).map((key) => ({ key, effect: 'NoSchedule' }));
  const taint = untoleratedTaint(pod, [...(node.spec?.taints ?? []), ...ofState]);
  return taint === undefined ? [] : [`node(s) had untolerated taint {${taint.key}: ${taint.value ?? ''}}`];
};

const nodeSelection: Filter = (pod, node) =>
  matchesNodeSelection(pod, node) ? [] : ["node(s) didn't match Pod's node affinity/selector"];

const hostPorts: Filter = (pod, _node, onNode) =>
  hostPortsTakenOn(pod, onNode) ? ["node(s) didn't have free ports for the requested pod ports"] : [];

/** Limits the reported reasons. A Pod may request a hundred thousand resources that the node does not have. */
const MAX_REASONS = 100;

const resources: Filter = (pod, node, onNode) => {
  const reasons: string[] = [];
  const maxPods = allocatableOf(node, 'pods');
  if (maxPods !== undefined && BigInt(onNode.count) + 1n > quantityValue(maxPods)) reasons.push('Too many pods');
  for (const [name, request] of wantedBy(pod)) {
    const allocatable = allocatableOf(node, name);
    const fits =
      allocatable !== undefined && compareQuantities(addQuantities(onNode.requested(name), request), allocatable) <= 0;
    if (!fits) reasons.push(`Insufficient ${name}`);
    if (reasons.length === MAX_REASONS) break;
  }
  return reasons;
};

const filters: readonly Filter[] = [schedulable, nodeName, taints, nodeSelection, hostPorts, resources];
