/** Combines the rules about where a Pod may run beside which other Pods, on all nodes. The functions are pure. */
import type { Node, Pod } from '../api/generated/types.ts';
import { hasPodAffinity, type NamespaceLabels, podAffinityOf } from './inter-pod-affinity.ts';
import type { PodsOnNode } from './node-pods.ts';
import { hardConstraints, spreadOf } from './topology-spread.ts';

export interface PodRule {
  /** Returns why the Pod does not fit on the node; an empty list if it fits. */
  reasonsAgainst(node: Node): string[];
  /**
   * For preemption: checks whether the Pod still fits when removed Pods are added to the node again. Returns undefined if the Pod does not
   * fit even without them.
   */
  beside(node: Node, removed: readonly Pod[]): AddAgain | undefined;
}

export interface AddAgain {
  fits(other: Pod): boolean;
  add(other: Pod): void;
}

/** Whether the Pod has rules about other Pods, so that a change of another Pod may let it fit. */
export const dependsOnPods = (pod: Pod): boolean => hardConstraints(pod).length > 0 || hasPodAffinity(pod);

/**
 * Returns one rule for the topology spread constraints and the affinity of the Pod and of other Pods. `podsOn`: as for schedule(). Returns
 * undefined if there are no such rules.
 */
export function podRuleOf(
  pod: Pod,
  nodes: readonly Node[],
  podsOn: (node: string) => PodsOnNode,
  namespaceLabels: NamespaceLabels,
): PodRule | undefined {
  const rules = [spreadOf(pod, nodes, podsOn), podAffinityOf(pod, nodes, podsOn, namespaceLabels)].filter(
    (each) => each !== undefined,
  );
  if (rules.length < 2) return rules[0];
  return {
    reasonsAgainst: (node) => rules.map((each) => each.reasonsAgainst(node)).find(({ length }) => length > 0) ?? [],
    beside(node, removed) {
      const parts = rules.map((each) => each.beside(node, removed)).filter((each) => each !== undefined);
      if (parts.length < rules.length) return undefined;
      return {
        fits: (other) => parts.every((each) => each.fits(other)),
        add: (other) => {
          for (const each of parts) each.add(other);
        },
      };
    },
  };
}
