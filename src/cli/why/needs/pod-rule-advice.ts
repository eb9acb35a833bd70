/**
 * Advises on messages of the scheduler about topology spread constraints and inter-Pod affinity (src/scheduling/pod-rules.ts). Pure.
 */
import { labelOf } from '../../../machinery/labels.ts';
import { hardConstraints } from '../../../scheduling/topology-spread.ts';
import { type Action, type Advice, type Living, nodeName, say } from '../subject.ts';

/** Patterns for the scheduler's message, each with actions. */
export const POD_RULE_ADVICE: readonly [RegExp, ...Advice[]][] = [
  [
    /pod topology spread constraints \(missing required label\)/,
    (subject) => addLabels(subject, missingKeys(subject, hardConstraints(subject.pod)), 'topologySpreadConstraints'),
  ],
  [/pod topology spread/, say('change its topologySpreadConstraints, or add a node')],
  [/pod affinity rules/, podAffinity],
  [
    /pod anti-affinity rules/,
    say('delete the Pods that its podAntiAffinity avoids, change its podAntiAffinity, or add a node'),
  ],
  [
    /existing pods anti-affinity rules/,
    say('delete the Pod whose podAntiAffinity avoids it, change its labels, or add a node'),
  ],
];

function podAffinity(subject: Living): Action {
  const terms = subject.pod.spec?.affinity?.podAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  const keys = missingKeys(subject, terms);
  if (keys.length > 0) return addLabels(subject, keys, 'podAffinity');
  return { description: 'create a Pod that its podAffinity selects, or change its podAffinity' };
}

/** Returns the topology keys that a node lacks as labels; none if the nodes are not known. */
function missingKeys({ nodes = [] }: Living, rules: readonly { topologyKey: string }[]): string[] {
  const keys = new Set(rules.map(({ topologyKey }) => topologyKey));
  return [...keys].filter((key) => nodes.some(({ metadata }) => labelOf(metadata.labels, key) === undefined));
}

function addLabels(subject: Living, keys: readonly string[], rules: string): Action {
  const labels = keys.map((key) => `${key}=VALUE`).join(' ') || 'KEY=VALUE';
  return {
    description: `label a node with each topologyKey of its ${rules}, or change its ${rules}`,
    command: subject.hints.kubectl(`label node ${nodeName(subject)} ${labels}`),
  };
}
