/**
 * Checks topology spread constraints with whenUnsatisfiable DoNotSchedule, which spread Pods over domains such as nodes or zones. The
 * functions are pure.
 * Source: the plugin PodTopologySpread of v1.33 (behavior and wording).
 */
import type { Node, Pod, TopologySpreadConstraint } from '../api/generated/types.ts';
import {
  type LabelMatcher,
  type LabelSelectorObject,
  labelOf,
  labelSelectorMatcher,
  likeOwnLabels,
} from '../machinery/labels.ts';
import type { PodsOnNode } from './node-pods.ts';
import type { PodRule } from './pod-rules.ts';
import { matchesNodeSelection, untoleratedTaint } from './requirements.ts';

const UNEVEN = "node(s) didn't match pod topology spread constraints";
const WITHOUT_LABEL = `${UNEVEN} (missing required label)`;

export const hardConstraints = ({ spec }: Pod): TopologySpreadConstraint[] =>
  (spec?.topologySpreadConstraints ?? []).filter(({ whenUnsatisfiable }) => whenUnsatisfiable === 'DoNotSchedule');

/**
 * Counts the selected Pods by domain, and checks constraints with these counts. `podsOn`: as for schedule(). Returns undefined if the Pod
 * has no constraints that must hold.
 */
export function spreadOf(pod: Pod, nodes: readonly Node[], podsOn: (node: string) => PodsOnNode): PodRule | undefined {
  const constraints = hardConstraints(pod);
  if (constraints.length === 0) return undefined;
  const keys = constraints.map(({ topologyKey }) => topologyKey);
  const hasKeys = ({ metadata }: Node): boolean => keys.every((key) => labelOf(metadata.labels, key) !== undefined);
  const known = nodes.filter(hasKeys);
  // If no node has all keys, the counts would not be read. A Pod may have thousands of constraints.
  const domains = known.length === 0 ? [] : constraints.map((constraint) => domainsOf(pod, constraint, known, podsOn));
  return {
    reasonsAgainst(node) {
      if (!hasKeys(node)) return [WITHOUT_LABEL];
      return domains.every((each) => each.fits(node, 0)) ? [] : [UNEVEN];
    },
    beside(node, removed) {
      if (!hasKeys(node)) return undefined;
      const changes = domains.map((each) => -removed.filter(each.counts).length);
      const fitsWith = (other?: Pod): boolean =>
        domains.every((each, index) =>
          each.fits(node, (changes[index] ?? 0) + (other !== undefined && each.counts(other) ? 1 : 0)),
        );
      if (!fitsWith()) return undefined;
      return {
        fits: fitsWith,
        add(other) {
          for (const [index, each] of domains.entries())
            if (each.counts(other)) changes[index] = (changes[index] ?? 0) + 1;
        },
      };
    },
  };
}

interface Domains {
  /** Whether the constraint counts the Pod, on whichever node it is. */
  counts(pod: Pod): boolean;
  /** Whether the Pod may be added to the domain of the node, if the count of this domain differs by `change` from the current count. */
  fits(node: Node, change: number): boolean;
}

function domainsOf(
  pod: Pod,
  constraint: TopologySpreadConstraint,
  nodes: readonly Node[],
  podsOn: (node: string) => PodsOnNode,
): Domains {
  const { topologyKey, maxSkew, minDomains = 1 } = constraint;
  const matches = selectorOf(pod, constraint);
  const counts = ({ metadata }: Pod): boolean =>
    metadata.deletionTimestamp === undefined &&
    metadata.namespace === pod.metadata.namespace &&
    matches(metadata.labels);
  const domainOf = ({ metadata }: Node): string => labelOf(metadata.labels, topologyKey) ?? '';
  const byDomain = new Map<string, number>();
  for (const node of nodes.filter((each) => isIncluded(pod, constraint, each))) {
    let count = byDomain.get(domainOf(node)) ?? 0;
    for (const other of podsOn(node.metadata.name).pods) if (counts(other)) count++;
    byDomain.set(domainOf(node), count);
  }
  const least = leastOf(byDomain);
  const self = matches(pod.metadata.labels) ? 1 : 0;
  return {
    counts,
    fits(node, change) {
      const domain = domainOf(node);
      const known = byDomain.get(domain);
      // If the constraint's policies exclude all nodes of the domain, the domain has no count, and its Pods change none.
      const count = known === undefined ? 0 : known + change;
      const others = least.except(domain);
      const minimum = byDomain.size < minDomains ? 0 : known === undefined ? others : Math.min(others, count);
      return count + self - minimum <= maxSkew;
    },
  };
}

/** Adds the Pod's own values of matchLabelKeys to the selector of the constraint. */
function selectorOf({ metadata }: Pod, { labelSelector, matchLabelKeys = [] }: TopologySpreadConstraint): LabelMatcher {
  if (labelSelector === undefined) return labelSelectorMatcher(undefined);
  const own = likeOwnLabels(matchLabelKeys, 'In', metadata.labels);
  const selector: LabelSelectorObject = {
    ...labelSelector,
    matchExpressions: [...(labelSelector.matchExpressions ?? []), ...own],
  };
  return labelSelectorMatcher(selector);
}

/** Whether the constraint's policies include the node. By default, node affinity excludes nodes and taints do not. */
const isIncluded = (
  pod: Pod,
  { nodeAffinityPolicy = 'Honor', nodeTaintsPolicy = 'Ignore' }: TopologySpreadConstraint,
  node: Node,
): boolean =>
  (nodeAffinityPolicy === 'Ignore' || matchesNodeSelection(pod, node)) &&
  (nodeTaintsPolicy === 'Ignore' || untoleratedTaint(pod, node.spec?.taints ?? []) === undefined);

/** except() returns the smallest count of all other domains, in constant time. */
function leastOf(byDomain: ReadonlyMap<string, number>): { except(domain: string): number } {
  let [first, second] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  let domainOfFirst: string | undefined;
  for (const [domain, count] of byDomain) {
    if (count < first) [first, second, domainOfFirst] = [count, first, domain];
    else if (count < second) second = count;
  }
  return { except: (domain) => (domain === domainOfFirst ? second : first) };
}
