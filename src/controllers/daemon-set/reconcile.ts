/**
 * Decides which Pods and revisions of a DaemonSet to create and delete, and computes its status. The functions are pure. The rolling update
 * waits until no Pods are missing or surplus.
 * Source: updateDaemonSet of pkg/controller/daemon/daemon_controller.go of v1.33 (behavior).
 */
import type { ControllerRevision, DaemonSet, DaemonSetStatus, Node, Pod } from '../../api/generated/types.ts';
import type { EventDraft } from '../../api/kind.ts';
import type { Millis } from '../../machinery/time.ts';
import { isMarked } from '../ownership/deletion-mark.ts';
import { isPodActive } from '../ownership/pod-state.ts';
import type { History } from '../revisions/history.ts';
import { daemonsOf } from './daemons.ts';
import { hashOf, obsoleteRevisions } from './history.ts';
import { manage, type Removal } from './manage.ts';
import { rollingStep } from './rolling-update.ts';
import { nextAvailableAt, statusOf } from './status.ts';

/** The maximum number of Pods that one decision creates, and that one decision deletes. Source: BurstReplicas of pkg/controller/daemon. */
export const BURST = 250;

export interface DaemonInput {
  daemonSet: DaemonSet;
  history: History & { current: ControllerRevision };
  nodes: readonly Node[];
  pods: readonly Pod[];
  mayRetry(nodeName: string): boolean;
  now: Millis;
}

export interface Decision {
  create: readonly string[];
  remove: readonly Removal[];
  /** Pods that are no longer to be deleted, but were marked with a deletion reason before a crash or a failed delete. */
  unmark: readonly Pod[];
  obsolete: readonly ControllerRevision[];
  events: readonly EventDraft[];
  failedOn: readonly string[];
  status: DaemonSetStatus;
  /** When the next ready Pod becomes available, so that the DaemonSet must be reconciled again; undefined if there is none. */
  checkAt: Millis | undefined;
}

export function reconcile({ daemonSet, history, nodes, pods, mayRetry, now }: DaemonInput): Decision {
  const daemons = daemonsOf(daemonSet, hashOf(history.current), nodes, pods, now);
  const shown = { status: statusOf(daemons), checkAt: nextAvailableAt(daemons) };
  const { create, remove, events, failedOn } = manage(daemons, mayRetry);
  const managed = { events, failedOn, ...shown };
  if (create.length + remove.length > 0)
    return {
      create: create.slice(0, BURST),
      remove: remove.slice(0, BURST),
      unmark: kept(pods, remove),
      obsolete: [],
      ...managed,
    };
  const isRolling = daemonSet.spec?.updateStrategy?.type !== 'OnDelete';
  const step = isRolling ? rollingStep(daemons) : { create: [], remove: [] };
  const strays = new Set(daemons.nodes.filter(({ placement }) => !placement.shouldRun).flatMap((each) => each.pods));
  const outdated = step.remove.map((pod): Removal => ({ pod, reason: strays.has(pod) ? 'ScaledDown' : 'Replaced' }));
  return {
    create: step.create.slice(0, BURST),
    remove: outdated.slice(0, BURST),
    unmark: kept(pods, outdated),
    obsolete: obsoleteRevisions(daemonSet, history, pods),
    ...managed,
  };
}

function kept(pods: readonly Pod[], removals: readonly Removal[]): Pod[] {
  const removed = new Set(removals.map(({ pod }) => pod));
  return pods.filter((pod) => isMarked(pod) && isPodActive(pod) && !removed.has(pod));
}
