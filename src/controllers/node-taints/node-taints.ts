/**
 * Taints nodes by their state. A node that is under pressure, not ready or cordoned gets NoSchedule taints; a node that
 * stays not ready also gets a NoExecute taint, for which the controller taint-eviction evicts Pods that do not tolerate it.
 *
 * Reads: nodes. Writes: nodes (spec.taints: only taints with the keys STATE_KEYS).
 * Invariants:
 *  1. A short restart of the runtime or the engine evicts no Pod: a node gets the NoExecute taint only after it has not been
 *     ready for 30 s (upstream's kubelet also waits 30 s before it reports that the runtime does not answer). The 30 s count
 *     from the start of the engine or the end of a suspension of the machine at the earliest.
 *  2. A node that shuts down gets no NoExecute taint: the node itself terminates its Pods within its shutdown grace period,
 *     and the Pod objects remain.
 * Source: "Taint Nodes by Condition", "Taint based Evictions" of the v1.33 documentation.
 */
import type { Node, Taint } from '../../api/generated/types.ts';
import { NODES } from '../../api/resources.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import { isApiError } from '../../machinery/status.ts';
import { formatTime, type Millis, parseTime } from '../../machinery/time.ts';
import { onAbort } from '../../platform/on-abort.ts';
import type { Timer } from '../../platform/platform.ts';
import { EVICTING_KEYS, SHUTTING_DOWN, STATE_KEYS, stateKeys } from '../../scheduling/node-taints.ts';
import { type ControllerOptions, SUSPENDED_MILLIS } from '../controller.ts';

/** How long a node must not have been ready before it gets the NoExecute taint. */
const EVICTS_AFTER_MILLIS = 30_000;

export async function startNodeTaints({ client, informers, timers, log, signal }: ControllerOptions): Promise<void> {
  const nodeClient = client.resource<Node>(NODES);
  /**
   * The start of the controller, or the end of the last suspension of the machine during which a timer in `waiting` was
   * due. The 30 s do not count from an earlier time.
   */
  let countsFrom = timers.now();
  const queue = createWorkQueue({ name: 'node-taints', process: taint, log, timers, signal });
  const look = ({ metadata }: Node): void => void queue.add(metadata.name);
  /** By node name: the timer that fires once the node has not been ready for 30 s. */
  const waiting = new Map<string, Timer>();
  onAbort(signal, () => {
    for (const timer of waiting.values()) timer.cancel();
  });
  const nodes = informers.follow<Node>(NODES, { signal }, { added: look, updated: look });
  await nodes.synced;

  async function taint(name: string): Promise<void> {
    waiting.get(name)?.cancel();
    waiting.delete(name);
    const node = nodes.get(undefined, name);
    if (node === undefined) return;
    const now = timers.now();
    const since = notReadySince(node);
    const evictsAt = since === undefined ? undefined : Math.max(since, countsFrom) + EVICTS_AFTER_MILLIS;
    if (evictsAt !== undefined && evictsAt > now)
      waiting.set(
        name,
        timers.at(evictsAt, () => {
          if (timers.now() - evictsAt >= SUSPENDED_MILLIS) countsFrom = timers.now();
          queue.add(name);
        }),
      );
    const wanted = wantedTaints(node, { now, evicts: evictsAt !== undefined && evictsAt <= now });
    if (wanted === undefined) return;
    log.info('node-taints: the state of a node has changed', { node: name, taints: wanted.map(({ key }) => key) });
    try {
      await nodeClient.update({ ...node, spec: { ...node.spec, taints: wanted } });
    } catch (error) {
      if (!isApiError(error, 'NotFound')) throw error;
    }
  }
}

/**
 * Returns since when the node has not been ready; 0 if its Ready condition has no time. Undefined if the node is ready, has no
 * Ready condition, or is shutting down.
 */
function notReadySince({ status }: Node): Millis | undefined {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  if (ready === undefined || ready.status === 'True' || ready.message?.includes(SHUTTING_DOWN)) return undefined;
  return parseTime(ready.lastTransitionTime) ?? 0;
}

/**
 * Returns all taints that the node should have, including those of other writers, or undefined if no taint must change.
 * `evicts` is true if the node has not been ready for so long that it gets the NoExecute taint.
 */
export function wantedTaints(node: Node, at: { now: Millis; evicts: boolean }): Taint[] | undefined {
  const present = node.spec?.taints ?? [];
  const keys = stateKeys(node);
  const due: Taint[] = [
    ...keys.map((key) => ({ key, effect: 'NoSchedule' })),
    ...keys.filter((key) => at.evicts && EVICTING_KEYS.includes(key)).map((key) => ({ key, effect: 'NoExecute' })),
  ];
  const isOurs = ({ key, effect }: Taint): boolean =>
    (effect === 'NoSchedule' && STATE_KEYS.includes(key)) || (effect === 'NoExecute' && EVICTING_KEYS.includes(key));
  const isDue = (taint: Taint): boolean => due.some(({ key, effect }) => key === taint.key && effect === taint.effect);
  const staying = present.filter((taint) => !isOurs(taint) || isDue(taint));
  const added = due.filter(({ key, effect }) => !staying.some((each) => each.key === key && each.effect === effect));
  if (added.length === 0 && staying.length === present.length) return undefined;
  return [...staying, ...added.map((taint) => ({ ...taint, timeAdded: formatTime(at.now) }))];
}
