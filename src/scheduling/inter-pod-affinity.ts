/**
 * Checks required inter-Pod affinity and anti-affinity: with which Pods a Pod must, or must not, share a domain such as a node or a zone.
 * The functions are pure.
 * Source: the plugin InterPodAffinity of v1.33 (behavior and wording).
 */
import type { Node, Pod, PodAffinityTerm } from '../api/generated/types.ts';
import {
  type LabelSelectorObject,
  type Labels,
  labelOf,
  labelSelectorMatcher,
  likeOwnLabels,
} from '../machinery/labels.ts';
import type { PodsOnNode } from './node-pods.ts';
import type { PodRule } from './pod-rules.ts';

const NO_AFFINITY = "node(s) didn't match pod affinity rules";
const OWN_ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules";
const ANTI_AFFINITY_OF_OTHERS = "node(s) didn't satisfy existing pods anti-affinity rules";

/** Returns the labels of a namespace; undefined if it does not exist. */
export type NamespaceLabels = (namespace: string) => Labels | undefined;

interface Term {
  topologyKey: string;
  /** Whether the term is about this Pod. */
  selects(pod: Pod, labelsOf: NamespaceLabels): boolean;
}

function termOf(owner: Pod, term: PodAffinityTerm): Term {
  const { namespaces = [], namespaceSelector, topologyKey } = term;
  const isOwnNamespace = namespaces.length === 0 && namespaceSelector === undefined;
  const named = new Set(isOwnNamespace ? [owner.metadata.namespace] : namespaces);
  const selectsNamespace = labelSelectorMatcher(namespaceSelector);
  const selectsLabels = labelSelectorMatcher(selectorOf(owner, term));
  return {
    topologyKey,
    selects({ metadata: { namespace = '', labels } }, labelsOf) {
      return selectsLabels(labels) && (named.has(namespace) || selectsNamespace(labelsOf(namespace)));
    },
  };
}

/** Adds the label keys that the API server has not added. It adds them to the selectors of new Pods; an older lifepod did not. */
function selectorOf(
  { metadata: { labels } }: Pod,
  { labelSelector, matchLabelKeys = [], mismatchLabelKeys = [] }: PodAffinityTerm,
): LabelSelectorObject | undefined {
  if (labelSelector === undefined) return undefined;
  const { matchExpressions = [] } = labelSelector;
  const missing = (keys: readonly string[], operator: 'In' | 'NotIn'): string[] => {
    const known = new Set(matchExpressions.filter((each) => each.operator === operator).map(({ key }) => key));
    return keys.filter((key) => !known.has(key));
  };
  const own = [
    ...likeOwnLabels(missing(matchLabelKeys, 'In'), 'In', labels),
    ...likeOwnLabels(missing(mismatchLabelKeys, 'NotIn'), 'NotIn', labels),
  ];
  return { ...labelSelector, matchExpressions: [...matchExpressions, ...own] };
}

const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';

const affinityTerms = (pod: Pod): Term[] =>
  (pod.spec?.affinity?.podAffinity?.[REQUIRED] ?? []).map((term) => termOf(pod, term));

const antiAffinityTermsByPod = new WeakMap<Pod, readonly Term[]>();

function antiAffinityTerms(pod: Pod): readonly Term[] {
  const known = antiAffinityTermsByPod.get(pod);
  if (known !== undefined) return known;
  const terms = (pod.spec?.affinity?.podAntiAffinity?.[REQUIRED] ?? []).map((term) => termOf(pod, term));
  antiAffinityTermsByPod.set(pod, terms);
  return terms;
}

/** Whether required anti-affinity of the Pod may keep other Pods away from its domains. */
export const mayRepel = ({ spec }: Pod): boolean => (spec?.affinity?.podAntiAffinity?.[REQUIRED] ?? []).length > 0;

/** Whether the Pod has rules about other Pods that must hold. */
export const hasPodAffinity = ({ spec }: Pod): boolean =>
  [spec?.affinity?.podAffinity, spec?.affinity?.podAntiAffinity].some((each) => (each?.[REQUIRED] ?? []).length > 0);

/** Returns the distinct topology keys of the terms that select the Pod. */
function keysSelecting(terms: readonly Term[], pod: Pod, labelsOf: NamespaceLabels): Set<string> {
  const keys = new Set<string>();
  for (const term of terms) if (!keys.has(term.topologyKey) && term.selects(pod, labelsOf)) keys.add(term.topologyKey);
  return keys;
}

/** Counts Pods by domain, which is a label of nodes as KEY=VALUE. */
type Counts = Map<string, number>;

/** The Pods that concern the incoming Pod, for each kind of rule. */
interface Tally {
  /** The Pods that all affinity terms of the incoming Pod select. */
  attracting: Counts;
  /** The Pods that an anti-affinity term of the incoming Pod selects. */
  repelled: Counts;
  /** The Pods with an anti-affinity term that selects the incoming Pod. */
  repelling: Counts;
  /** Whether there are attracting Pods in domains that this tally does not contain. */
  isAttractedElsewhere: boolean;
}

const domainOf = ({ metadata }: Node, key: string): string | undefined => {
  const value = labelOf(metadata.labels, key);
  return value === undefined ? undefined : `${key}=${value}`;
};

function count(counts: Counts, node: Node, keys: Iterable<string>, times: number): void {
  for (const key of keys) {
    const domain = domainOf(node, key);
    if (domain === undefined) continue;
    const next = (counts.get(domain) ?? 0) + times;
    if (next === 0) counts.delete(domain);
    else counts.set(domain, next);
  }
}

/** Returns the counts of the domains to which the node belongs. */
function countsOn({ metadata }: Node, counts: Counts): Counts {
  if (counts.size === 0) return new Map();
  const domains = Object.entries(metadata.labels ?? {}).map(([key, value]) => `${key}=${value}`);
  return new Map(
    domains.flatMap((domain): [string, number][] => {
      const found = counts.get(domain);
      return found === undefined ? [] : [[domain, found]];
    }),
  );
}

/**
 * Examines the Pods of all nodes once, and checks the rules with the counts. `podsOn`: as for schedule(). Returns undefined if neither the
 * Pod nor any other has such a rule.
 */
export function podAffinityOf(
  pod: Pod,
  nodes: readonly Node[],
  podsOn: (node: string) => PodsOnNode,
  labelsOf: NamespaceLabels,
): PodRule | undefined {
  const affinity = affinityTerms(pod);
  const antiAffinity = antiAffinityTerms(pod);
  const isFree = affinity.length === 0 && antiAffinity.length === 0;
  if (isFree && nodes.every(({ metadata }) => podsOn(metadata.name).repelling.size === 0)) return undefined;
  const affinityKeys = new Set(affinity.map(({ topologyKey }) => topologyKey));
  const attracts = (other: Pod): boolean => affinity.every((term) => term.selects(other, labelsOf));
  const add = (tally: Tally, node: Node, other: Pod, times: 1 | -1): void => {
    // A nominated Pod may still be deleted, or be bound to another node.
    const isBound = !podsOn(node.metadata.name).nominees.has(other);
    if (affinity.length > 0 && isBound && attracts(other)) count(tally.attracting, node, affinityKeys, times);
    count(tally.repelled, node, keysSelecting(antiAffinity, other, labelsOf), times);
    count(tally.repelling, node, keysSelecting(antiAffinityTerms(other), pod, labelsOf), times);
  };
  const all: Tally = { attracting: new Map(), repelled: new Map(), repelling: new Map(), isAttractedElsewhere: false };
  for (const node of nodes) {
    const { pods, repelling } = podsOn(node.metadata.name);
    for (const other of isFree ? repelling : pods) add(all, node, other, 1);
  }
  const attractsItself = affinity.length > 0 && attracts(pod);
  const against = (node: Node, { attracting, repelled, repelling, isAttractedElsewhere }: Tally): string[] => {
    const domains = [...affinityKeys].map((key) => domainOf(node, key));
    const isAttracted = domains.every((domain) => domain !== undefined && attracting.has(domain));
    // The first of Pods that attract each other needs no other Pod, only the labels of the node.
    const isFirst = attractsItself && attracting.size === 0 && !isAttractedElsewhere && !domains.includes(undefined);
    if (!isAttracted && !isFirst) return [NO_AFFINITY];
    if (countsOn(node, repelled).size > 0) return [OWN_ANTI_AFFINITY];
    return countsOn(node, repelling).size > 0 ? [ANTI_AFFINITY_OF_OTHERS] : [];
  };
  return {
    reasonsAgainst: (node) => against(node, all),
    beside(node, removed) {
      const attracting = countsOn(node, all.attracting);
      const tally: Tally = {
        attracting,
        repelled: countsOn(node, all.repelled),
        repelling: countsOn(node, all.repelling),
        isAttractedElsewhere: attracting.size < all.attracting.size,
      };
      for (const other of removed) add(tally, node, other, -1);
      if (against(node, tally).length > 0) return undefined;
      return {
        fits(other) {
          add(tally, node, other, 1);
          const isFitting = against(node, tally).length === 0;
          add(tally, node, other, -1);
          return isFitting;
        },
        add: (other) => add(tally, node, other, 1),
      };
    },
  };
}
