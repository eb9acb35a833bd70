/**
 * Taints nodes by their state. A node that is under pressure, has no network, is not ready or is cordoned gets NoSchedule taints; a node
 * that stays not ready also gets a NoExecute taint, for which the controller taint-eviction evicts Pods that do not tolerate it.
 *
 * Reads: nodes. Writes: nodes (spec.taints: only taints with the keys STATE_KEYS).
 * Invariants:
 *  1. A short restart of the runtime or the engine evicts no Pod: a node gets the NoExecute taint only after it has not been ready for 30 s
 *     (upstream's kubelet also waits 30 s before it reports that the runtime does not answer). The 30 s count from the start of the engine,
 *     the end of a suspension of the machine, or the end of a time in which no node was ready, at the earliest.
 *  2. A node that shuts down gets no NoExecute taint: the node itself terminates its Pods within its shutdown grace period,
 *     and the Pod objects remain.
 *  3. In each zone, nodes get the NoExecute taint one after another, at the rate of the zone. If no node of the cluster is ready, as after
 *     the failure of its only node, no node gets the taint, and nodes that have it lose it.
 *  4. A node that has the NoExecute taint keeps the taint until the node is ready, also across restarts of the engine; the key of the taint
 *     follows the state at once.
 *  5. A change of one node examines no other node, unless the evictions of a zone change.
 * Source: "Taint Nodes by Condition", "Taint based Evictions" and "Rate limits on eviction" of the v1.33 documentation;
 * pkg/controller/nodelifecycle of v1.33, which adds the NoExecute taint without the 30 s.
 */
import type { Node, Taint } from '../../api/generated/types.ts';
import { NODES } from '../../api/resources.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import { isApiError } from '../../machinery/status.ts';
import { formatTime, type Millis } from '../../machinery/time.ts';
import { EVICTING_KEYS, STATE_KEYS, stateKeys } from '../../scheduling/node-taints.ts';
import type { ControllerOptions } from '../controller.ts';
import { createNodeEvictions, isEvicting } from './node-evictions.ts';

export async function startNodeTaints({ client, informers, timers, log, signal }: ControllerOptions): Promise<void> {
  const nodeClient = client.resource<Node>(NODES);
  const queue = createWorkQueue({ name: 'node-taints', process: taint, log, timers, signal });
  const evictions = createNodeEvictions({ due: (name) => queue.add(name), timers, log, signal });
  const look = (node: Node): void => {
    queue.add(node.metadata.name);
    evictions.set(node);
  };
  const remove = ({ metadata }: Node): void => evictions.remove(metadata.name);
  const nodes = informers.follow<Node>(NODES, { signal }, { added: look, updated: look, deleted: remove });
  await nodes.synced;

  async function taint(name: string): Promise<void> {
    const node = nodes.get(undefined, name);
    if (node === undefined) return;
    const now = timers.now();
    const wanted = wantedTaints(node, { now, evicts: evictions.isDue(node, now) });
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
 * Returns all taints that the node should have, including taints of other writers; undefined if nothing must change. `evicts`: whether the
 * node must have the NoExecute taint.
 */
export function wantedTaints(node: Node, at: { now: Millis; evicts: boolean }): Taint[] | undefined {
  const present = node.spec?.taints ?? [];
  const keys = stateKeys(node);
  const due: Taint[] = [
    ...keys.map((key) => ({ key, effect: 'NoSchedule' })),
    ...keys.filter((key) => at.evicts && EVICTING_KEYS.includes(key)).map((key) => ({ key, effect: 'NoExecute' })),
  ];
  const isOurs = ({ key, effect }: Taint): boolean =>
    (effect === 'NoSchedule' && STATE_KEYS.includes(key)) || isEvicting({ key, effect });
  const isDue = (taint: Taint): boolean => due.some(({ key, effect }) => key === taint.key && effect === taint.effect);
  const staying = present.filter((taint) => !isOurs(taint) || isDue(taint));
  const added = due.filter(({ key, effect }) => !staying.some((each) => each.key === key && each.effect === effect));
  if (added.length === 0 && staying.length === present.length) return undefined;
  return [...staying, ...added.map((taint) => ({ ...taint, timeAdded: formatTime(at.now) }))];
}
