/**
 * Decides on which nodes a Pod is missing, and which Pods must not exist. The functions are pure.
 * Source: podsShouldBeOnNode and getUnscheduledPodsWithoutNode of pkg/controller/daemon/daemon_controller.go of v1.33 (behavior and
 * wording).
 */

import { hasEnded } from '../../api/core/v1/pod/status/final-phase.ts';
import type { Pod } from '../../api/generated/types.ts';
import type { EventDraft } from '../../api/kind.ts';
import { isPodReady } from '../ownership/pod-state.ts';
import type { DeletionReason } from '../ownership/pods-of-owner.ts';
import {
  type Daemons,
  isAvailable,
  isDeleting,
  isUpdated,
  type NodeWithPods,
  olderFirst,
  updateAmounts,
} from './daemons.ts';

export interface Removal {
  pod: Pod;
  reason: DeletionReason;
}

export interface Management {
  create: string[];
  remove: Removal[];
  events: EventDraft[];
  /** Names of nodes whose failed Pod is about to be deleted. The back-off delays their next replacement. */
  failedOn: string[];
}

/**
 * Returns the names of the nodes on which a Pod is missing, the Pods to delete, and Events. `mayRetry`: whether a failed Pod on the node
 * may be replaced now.
 */
export function manage(daemons: Daemons, mayRetry: (nodeName: string) => boolean): Management {
  const result: Management = { create: [], remove: [], events: [], failedOn: [] };
  for (const each of daemons.nodes) {
    const { placement, pods, node } = each;
    if (placement.shouldContinue) {
      if (placement.shouldRun && isVacant(daemons, pods)) result.create.push(node.metadata.name);
      else cleanUp(daemons, each, mayRetry, result);
    } else result.remove.push(...removals(pods, 'ScaledDown'));
  }
  const unbound = daemons.elsewhere.filter(({ spec }) => !spec?.nodeName);
  result.remove.push(...removals(unbound, 'ScaledDown'));
  return result;
}

/** Whether the node needs a Pod. With a surge, a Pod that is being deleted does not delay its replacement. */
const isVacant = (daemons: Daemons, pods: readonly Pod[]): boolean =>
  pods.length === 0 || (pods.every(isDeleting) && updateAmounts(daemons).maxSurge > 0);

const removals = (pods: readonly Pod[], reason: DeletionReason): Removal[] =>
  pods.filter((pod) => !isDeleting(pod)).map((pod) => ({ pod, reason }));

function cleanUp(
  daemons: Daemons,
  { node, pods }: NodeWithPods,
  mayRetry: (nodeName: string) => boolean,
  result: Management,
): void {
  const { name } = node.metadata;
  const running: Pod[] = [];
  for (const pod of pods.filter((each) => !isDeleting(each))) {
    if (!hasEnded(pod)) running.push(pod);
    else if (pod.status?.phase === 'Succeeded') {
      result.events.push(endedEvent('Normal', 'SucceededDaemonPod', pod, name));
      result.remove.push({ pod, reason: 'Replaced' });
    } else if (mayRetry(name)) {
      result.failedOn.push(name);
      result.events.push(endedEvent('Warning', 'FailedDaemonPod', pod, name));
      result.remove.push({ pod, reason: 'Replaced' });
    }
  }
  result.remove.push(...removals(surplus(daemons, running), 'Replaced'));
}

function endedEvent(type: 'Normal' | 'Warning', reason: string, { metadata, status }: Pod, node: string): EventDraft {
  const [found, then] = status?.phase === 'Succeeded' ? ['succeeded', 'delete'] : ['failed', 'kill'];
  const pod = `${metadata.namespace}/${metadata.name}`;
  return { type, reason, message: `Found ${found} daemon pod ${pod} on node ${node}, will try to ${then} it` };
}

/**
 * Returns the Pods of a node that must be deleted: all but the oldest. With a surge, the node keeps the oldest Pod of the current template
 * and the oldest previous Pod. If both exist, the previous Pod is deleted once it is not ready or the current Pod is available.
 */
function surplus(daemons: Daemons, running: readonly Pod[]): Pod[] {
  const ordered = [...running].sort(olderFirst);
  if (updateAmounts(daemons).maxSurge === 0) return ordered.slice(1);
  const updated = ordered.filter((pod) => isUpdated(pod, daemons.hash));
  const old = ordered.filter((pod) => !isUpdated(pod, daemons.hash));
  const [oldestUpdated, oldestOld] = [updated[0], old[0]];
  const tooMany = [...updated.slice(1), ...old.slice(1)];
  if (oldestUpdated === undefined || oldestOld === undefined) return tooMany;
  const isReplaced = !isPodReady(oldestOld) || isAvailable(daemons, oldestUpdated);
  return isReplaced ? [...tooMany, oldestOld] : tooMany;
}
