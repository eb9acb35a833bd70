/** Which changes of a node can make a Pod fit that did not. Source: kube-scheduler's event handlers (behavior). */
import { isDeepStrictEqual } from 'node:util';
import type { Node } from '../api/generated/types.ts';

/** What filters look at; heartbeats change none of it. */
const relevant = ({ metadata, spec, status }: Node): unknown => [
  metadata.labels,
  spec?.unschedulable ?? false,
  spec?.taints ?? [],
  status?.allocatable,
  (status?.conditions ?? []).map(({ type, status: state }) => [type, state]),
];

export const mayFitBetter = (node: Node, old: Node): boolean => !isDeepStrictEqual(relevant(node), relevant(old));
