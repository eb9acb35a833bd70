/** Decides which changes of a node may let an unschedulable Pod fit. Source: kube-scheduler's event handlers (behavior). */
import { isDeepStrictEqual } from 'node:util';
import type { Node } from '../api/generated/types.ts';

/** The parts of a node that the filters read. A heartbeat changes none of them. */
const relevant = ({ metadata, spec, status }: Node): unknown => [
  metadata.labels,
  spec?.unschedulable ?? false,
  spec?.taints ?? [],
  status?.allocatable ?? status?.capacity,
  (status?.conditions ?? []).map(({ type, status: state }) => [type, state]),
];

export const mayFitBetter = (node: Node, old: Node): boolean => !isDeepStrictEqual(relevant(node), relevant(old));
