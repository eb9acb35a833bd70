/**
 * Computes the state of a DaemonSet on which decisions are based: its Pods by node, and whether they have the current template. The
 * functions are pure.
 * Source: GetNodesToDaemonPods, findUpdatedPodsOnNode and IsPodUpdated of v1.33 (behavior).
 */

import { hasEnded } from '../../api/core/v1/pod/status/final-phase.ts';
import type { DaemonSet, Node, Pod } from '../../api/generated/types.ts';
import { resolveAmount } from '../../api/int-or-percent.ts';
import { type Millis, parseTime } from '../../machinery/time.ts';
import { isPodAvailable } from '../ownership/pod-state.ts';
import { nodeOf, type Placement, placements } from './placement.ts';

/** The label of Pods and ControllerRevisions with the hash of their template. */
export const HASH = 'controller-revision-hash';
export const GENERATION_LABEL = 'pod-template-generation';

export interface NodeWithPods {
  node: Node;
  placement: Placement;
  pods: readonly Pod[];
}

export interface Daemons {
  daemonSet: DaemonSet;
  hash: string;
  nodes: readonly NodeWithPods[];
  /** Pods for nodes that do not exist. */
  elsewhere: readonly Pod[];
  now: Millis;
}

/** Groups the Pods that the DaemonSet controls by node. Ignores Pods that have ended and are being deleted. */
export function daemonsOf(
  daemonSet: DaemonSet,
  hash: string,
  nodes: readonly Node[],
  pods: readonly Pod[],
  now: Millis,
): Daemons {
  const present = pods.filter((pod) => !(hasEnded(pod) && isDeleting(pod)));
  const byNode = Map.groupBy(present, nodeOf);
  const placementOf = placements(daemonSet);
  const names = new Set(nodes.map(({ metadata }) => metadata.name));
  return {
    daemonSet,
    hash,
    nodes: nodes.map((node) => ({ node, placement: placementOf(node), pods: byNode.get(node.metadata.name) ?? [] })),
    elsewhere: present.filter((pod) => {
      const name = nodeOf(pod);
      return name !== undefined && !names.has(name);
    }),
    now,
  };
}

export const isDeleting = ({ metadata }: Pod): boolean => metadata.deletionTimestamp !== undefined;

export const isUpdated = ({ metadata }: Pod, hash: string): boolean => metadata.labels?.[HASH] === hash;

export const isAvailable = ({ daemonSet, now }: Daemons, pod: Pod): boolean =>
  isPodAvailable(pod, daemonSet.spec?.minReadySeconds ?? 0, now);

const createdAt = ({ metadata }: Pod): Millis => parseTime(metadata.creationTimestamp) ?? 0;

/** Sort order: bound Pods first, then by creation time and name. */
export const olderFirst = (a: Pod, b: Pod): number =>
  Number(!a.spec?.nodeName) - Number(!b.spec?.nodeName) ||
  createdAt(a) - createdAt(b) ||
  (a.metadata.name < b.metadata.name ? -1 : 1);

/**
 * Returns the Pod of the current template and the older Pod of a node, without Pods that are being deleted. Returns undefined if there are
 * several of either: manage() deletes the surplus first.
 */
export function pairOf(
  pods: readonly Pod[],
  hash: string,
): { updated: Pod | undefined; old: Pod | undefined } | undefined {
  const [updated = [], old = []] = [true, false].map((wanted) =>
    pods.filter((pod) => !isDeleting(pod) && isUpdated(pod, hash) === wanted),
  );
  return updated.length > 1 || old.length > 1 ? undefined : { updated: updated[0], old: old[0] };
}

/**
 * Returns on how many nodes there may be a second Pod, and on how many there may be no available Pod, during an update. Percentages are
 * rounded up. If both amounts are 0, one node may have no available Pod.
 */
export function updateAmounts({ daemonSet, nodes }: Daemons): { maxSurge: number; maxUnavailable: number } {
  const desired = nodes.filter(({ placement }) => placement.shouldRun).length;
  const { updateStrategy } = daemonSet.spec ?? {};
  const isRolling = updateStrategy?.type !== 'OnDelete';
  const maxSurge = isRolling ? resolveAmount(updateStrategy?.rollingUpdate?.maxSurge, desired, 'up') : 0;
  const maxUnavailable = isRolling ? resolveAmount(updateStrategy?.rollingUpdate?.maxUnavailable, desired, 'up') : 0;
  return { maxSurge, maxUnavailable: maxSurge === 0 && maxUnavailable === 0 ? 1 : maxUnavailable };
}
