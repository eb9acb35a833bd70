/** The scheduler's decisions that the informer of Pods may not show yet: assumed bindings and nominated nodes. */
import { hasEnded } from '../api/core/v1/pod/status/final-phase.ts';
import type { Pod } from '../api/generated/types.ts';
import { priorityOf } from '../scheduling/preemption.ts';

export interface Decided {
  /**
   * The Pods that this scheduler binds, as if they were already bound, by UID. A Pod is removed once the informer shows its binding
   * or deletion, or if the binding fails.
   */
  assumed: Map<string, Pod>;
  /** By the UID of a Pod: its nominated node, on which the Pod will fit once other Pods, such as preempted ones, have terminated. */
  nominated: Map<string, string>;
}

/** Returns a copy of the Pod in which spec.nodeName is set, as if the Pod were bound. */
export const onNode = (pod: Pod, nodeName: string): Pod => ({ ...pod, spec: { ...pod.spec, nodeName } }) as Pod;

/**
 * Returns the Pods whose resources are not available to `pod`: the bound Pods that have not ended, the assumed Pods, and the other
 * waiting Pods that have a nominated node and at least the priority of `pod`. These waiting Pods are returned as if they were bound
 * to their nominated nodes. `isWaiting`: whether a Pod still needs a node.
 */
export function podsBefore(
  pod: Pod,
  all: readonly Pod[],
  { assumed, nominated }: Decided,
  isWaiting: (pod: Pod) => boolean,
): Pod[] {
  const bound = all.filter((each) => each.spec?.nodeName && !hasEnded(each));
  const before = [...bound, ...assumed.values()];
  if (nominated.size === 0) return before;
  for (const each of all) {
    const uid = each.metadata.uid as string;
    const nodeName = nominated.get(uid);
    if (nodeName === undefined || assumed.has(uid) || uid === pod.metadata.uid) continue;
    if (isWaiting(each) && priorityOf(each) >= priorityOf(pod)) before.push(onNode(each, nodeName));
  }
  return before;
}
