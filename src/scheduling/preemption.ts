/**
 * Room for a Pod among others of lower priority: on which node, and who goes. Pure.
 * Source: "Pod Priority and Preemption" of the v1.33 documentation; the plugin DefaultPreemption of v1.33 (behaviour).
 */
import { isMirrorPod } from '../api/core/v1/pod/mirror.ts';
import { hasEnded } from '../api/core/v1/pod/phase.ts';
import type { Node, Pod } from '../api/generated/types.ts';
import { reasonsAgainst } from './schedule.ts';
import { claimProblem, type VolumeFacts } from './volume-claims.ts';

export interface Room {
  node: string;
  /** To be deleted; empty where those that end already make the room. */
  victims: Pod[];
}

export const priorityOf = ({ spec }: Pod): number => spec?.priority ?? 0;

/** The one of higher priority first, of equal ones the older. */
export const importantFirst = (a: Pod, b: Pod): number =>
  priorityOf(b) - priorityOf(a) ||
  (a.metadata.creationTimestamp ?? '').localeCompare(b.metadata.creationTimestamp ?? '');

/** `pods`: every Pod that has a node. undefined: no node can be freed for it, or it does not want that. */
export function roomFor(
  pod: Pod,
  nodes: readonly Node[],
  pods: readonly Pod[],
  volumes?: VolumeFacts,
): Room | undefined {
  if (pod.spec?.preemptionPolicy === 'Never') return undefined;
  if (volumes !== undefined && claimProblem(pod, volumes) !== undefined) return undefined;
  const byNode = Map.groupBy(
    pods.filter((other) => !hasEnded(other)),
    (other) => other.spec?.nodeName ?? '',
  );
  let best: Room | undefined;
  for (const node of nodes) {
    const victims = victimsOn(pod, node, byNode.get(node.metadata.name) ?? [], volumes);
    if (victims === undefined) continue;
    const room = { node: node.metadata.name, victims };
    if (best === undefined || compareRooms(room, best) < 0) best = room;
  }
  return best;
}

function victimsOn(
  pod: Pod,
  node: Node,
  podsOnNode: readonly Pod[],
  volumes: VolumeFacts | undefined,
): Pod[] | undefined {
  const fitsBeside = (others: readonly Pod[]): boolean => reasonsAgainst(pod, node, others, volumes).length === 0;
  // The file of a static Pod would bring it back.
  const mayGo = (other: Pod): boolean => priorityOf(other) < priorityOf(pod) && !isMirrorPod(other);
  const lower = podsOnNode.filter(mayGo).sort(importantFirst);
  const staying = podsOnNode.filter((other) => !lower.includes(other));
  if (!fitsBeside(staying)) return undefined;
  const isEnding = ({ metadata }: Pod): boolean => metadata.deletionTimestamp !== undefined;
  const victims: Pod[] = [];
  for (const other of lower.filter((each) => !isEnding(each))) {
    if (fitsBeside([...staying, other])) staying.push(other);
    else victims.push(other);
  }
  return victims;
}

/** Less than 0: the first one costs less. */
function compareRooms(a: Room, b: Room): number {
  const highest = ({ victims }: Room): number => Math.max(Number.NEGATIVE_INFINITY, ...victims.map(priorityOf));
  const sum = ({ victims }: Room): number => victims.reduce((total, victim) => total + priorityOf(victim), 0);
  const order = (x: number, y: number): number => (x === y ? 0 : x < y ? -1 : 1);
  return (
    order(highest(a), highest(b)) ||
    order(sum(a), sum(b)) ||
    order(a.victims.length, b.victims.length) ||
    a.node.localeCompare(b.node)
  );
}
