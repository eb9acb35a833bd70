/** Matches a Pod's tolerations, node selector and node affinity with a node. Source: component-helpers' scheduling of v1.33. */
import type {
  Node,
  NodeSelector,
  NodeSelectorRequirement,
  NodeSelectorTerm,
  Pod,
  Taint,
  Toleration,
} from '../api/generated/types.ts';
import { type LabelOperator, matchesRequirement } from '../machinery/labels.ts';

export const tolerates = (toleration: Toleration, taint: Pick<Taint, 'key' | 'effect' | 'value'>): boolean =>
  (!toleration.effect || toleration.effect === taint.effect) &&
  (!toleration.key || toleration.key === taint.key) &&
  (toleration.operator === 'Exists' || (toleration.value ?? '') === (taint.value ?? ''));

/**
 * Returns the first taint with one of these effects that the Pod does not tolerate; undefined if there is none. By default,
 * PreferNoSchedule taints are ignored, because they never exclude a node.
 */
export const untoleratedTaint = (
  pod: Pod,
  taints: readonly Taint[],
  effects: readonly string[] = ['NoSchedule', 'NoExecute'],
): Taint | undefined => {
  const tolerationOf = tolerationFinder(pod);
  return taints.find((taint) => effects.includes(taint.effect) && tolerationOf(taint) === undefined);
};

/**
 * Returns a function that finds the Pod's first toleration of a taint; undefined if the Pod does not tolerate it. Tolerations are indexed
 * by key, so that many taints and tolerations match in linear time. The index is built on the first call, because most nodes have no
 * taints.
 */
export function tolerationFinder(pod: Pod): (taint: Taint) => Toleration | undefined {
  let byKey: Map<string, RankedToleration[]> | undefined;
  return (taint) => {
    byKey ??= tolerationsByKey(pod);
    return [taint.key, '']
      .flatMap((key) => byKey?.get(key)?.find(({ toleration }) => tolerates(toleration, taint)) ?? [])
      .sort((a, b) => a.rank - b.rank)[0]?.toleration;
  };
}

interface RankedToleration {
  toleration: Toleration;
  rank: number;
}

function tolerationsByKey({ spec }: Pod): Map<string, RankedToleration[]> {
  const distinct = new Map<string, Toleration>();
  for (const toleration of spec?.tolerations ?? []) {
    const { key = '', operator = '', value = '', effect = '' } = toleration;
    const id = JSON.stringify([key, operator, value, effect]);
    if (!distinct.has(id)) distinct.set(id, toleration);
  }
  const ranked = [...distinct.values()].map((toleration, rank) => ({ toleration, rank }));
  return Map.groupBy(ranked, ({ toleration }) => toleration.key ?? '');
}

export function matchesNodeSelection(pod: Pod, node: Node): boolean {
  const labels = node.metadata.labels ?? {};
  for (const [key, value] of Object.entries(pod.spec?.nodeSelector ?? {})) {
    if (labels[key] !== value) return false;
  }
  const needed = pod.spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return needed === undefined || matchesNodeSelector(needed, node);
}

export const matchesNodeSelector = ({ nodeSelectorTerms }: NodeSelector, node: Node): boolean =>
  nodeSelectorTerms.some((term) => matchesTerm(term, node));

/** An empty term matches no node. */
function matchesTerm(term: NodeSelectorTerm, node: Node): boolean {
  const expressions = term.matchExpressions ?? [];
  const fields = term.matchFields ?? [];
  return (
    expressions.length + fields.length > 0 &&
    expressions.every((requirement) => matches(requirement, node.metadata.labels ?? {})) &&
    fields.every((requirement) => matches(requirement, { 'metadata.name': node.metadata.name }))
  );
}

const operators: Readonly<Record<string, LabelOperator>> = {
  In: 'in',
  NotIn: 'notin',
  Exists: 'exists',
  DoesNotExist: '!',
  Gt: 'gt',
  Lt: 'lt',
};

function matches({ key, operator, values = [] }: NodeSelectorRequirement, labels: Record<string, string>): boolean {
  const known = operators[operator];
  return known !== undefined && matchesRequirement({ key, operator: known, values }, labels);
}
