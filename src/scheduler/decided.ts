/** What the scheduler has decided and the informer of Pods does not show yet: assumed bindings and nominated nodes. */
import { hasEnded } from '../api/core/v1/pod/status/phase.ts';
import type { Pod } from '../api/generated/types.ts';
import { priorityOf } from '../scheduling/preemption.ts';

export interface Decided {
  /** Pods that this scheduler has bound, until the informer shows the binding; by UID. */
  assumed: Map<string, Pod>;
  /** The nodes on which victims are preempted for a Pod, by the UID of the Pod. */
  nominated: Map<string, string>;
}

/** The Pod as it will be once it is bound. */
export const onNode = (pod: Pod, nodeName: string): Pod => ({ ...pod, spec: { ...pod.spec, nodeName } }) as Pod;

/**
 * The Pods whose resources are not available to `pod`: bound and assumed ones, and those of at least its priority for which
 * victims are being preempted, as if they ran on their nominated nodes. `isWaiting`: whether a Pod still needs a node.
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
