/**
 * Reports nodes whose agent gives no sign of life: the node's conditions become Unknown, and soon after, its Pods become not Ready. The
 * controllers node-taints and taint-eviction react to the conditions.
 *
 * Reads: nodes, leases, pods. Writes: nodes/status (conditions), pods/status (the condition Ready), events.
 * Invariants:
 *  1. A sign of life is a renewal of the node's Lease or a heartbeat in its status. It counts from the time at which this controller
 *     received it. Therefore the clocks of node and controller may differ, and each agent has the whole grace period after a start of the
 *     engine.
 *  2. A suspension of the machine, and a time in which the API rejects writes, do not count as silence of the agent: the grace period
 *     starts again.
 * Source: "Heartbeats" in "Nodes" of the v1.33 documentation; pkg/controller/nodelifecycle of v1.33.
 */
import type { Lease, Node, NodeCondition, Pod } from '../../api/generated/types.ts';
import { LEASES, NODES, PODS } from '../../api/resources.ts';
import type { Client } from '../../client/client.ts';
import { createEventRecorder, type EventRecorder } from '../../client/events.ts';
import { unlessChanged } from '../../client/unless-changed.ts';
import { createWorkQueue } from '../../client/work-queue.ts';
import type { Millis } from '../../machinery/time.ts';
import { type ControllerOptions, nodeNamesOf } from '../controller.ts';
import { createSignsOfLife } from './signs-of-life.ts';
import { notReadyCondition, unknownConditions } from './unknown-state.ts';

/** The default of upstream's --node-monitor-grace-period. */
export const GRACE_MILLIS = 50_000;
/**
 * When the conditions of a node become Unknown, its Pods become not Ready after this delay, unless the agent renews its Lease, as it does
 * every 10 s. The delay is necessary because an agent that is still alive would not write the Ready conditions of its Pods again.
 */
export const CONFIRM_MILLIS = 15_000;
const LEASE_NAMESPACE = 'kube-node-lease';
const MERGE = 'application/strategic-merge-patch+json';

export async function startNodeLifecycle(options: ControllerOptions): Promise<void> {
  const { client, informers, timers, log, signal } = options;
  const events = createEventRecorder(client, { component: 'node-controller', timers, log, signal });
  const queue = createWorkQueue({ name: 'node-lifecycle', process: check, log, timers, signal });
  const signs = createSignsOfLife(options, GRACE_MILLIS, (name) => queue.add(name));
  const nodes = informers.follow<Node>(
    NODES,
    { signal },
    {
      added: ({ metadata }) => signs.add(metadata.name),
      updated(node, old) {
        if (heartbeatOf(node) !== heartbeatOf(old)) signs.seen(node.metadata.name);
      },
      deleted: ({ metadata }) => signs.remove(metadata.name),
    },
  );
  const renewed = ({ metadata, spec }: Lease, old?: Lease): void => {
    if (metadata.namespace === LEASE_NAMESPACE && spec?.renewTime !== old?.spec?.renewTime) signs.seen(metadata.name);
  };
  const leases = informers.follow<Lease>(LEASES, { signal }, { added: (lease) => renewed(lease), updated: renewed });
  const pods = informers.follow<Pod>(PODS, { signal });
  await Promise.all([nodes.synced, leases.synced, pods.synced]);

  async function check(name: string): Promise<void> {
    const node = nodes.get(undefined, name);
    const seenAt = signs.last(name);
    if (node === undefined || seenAt === undefined) return;
    const now = timers.now();
    if (seenAt + GRACE_MILLIS > now) return signs.checkAt(name, seenAt + GRACE_MILLIS);
    const conditions = unknownConditions(node, now);
    signs.checkAt(name, now + (conditions.length > 0 ? CONFIRM_MILLIS : GRACE_MILLIS));
    try {
      if (conditions.length > 0) {
        log.warn('node-lifecycle: the agent of a node gives no sign of life', { node: name });
        await reportSilence(node, conditions, client, events);
      } else await markPods(pods.by(nodeNamesOf, name), now, client, events);
    } catch (error) {
      if (signal.aborted) return;
      log.warn('node-lifecycle: cannot report that a node is silent', { node: name, error: String(error) });
      // The API may have rejected the writes of the node's agent as well.
      signs.seen(name);
    }
  }
}

const heartbeatOf = ({ status }: Node): string | undefined =>
  status?.conditions?.find(({ type }) => type === 'Ready')?.lastHeartbeatTime;

async function reportSilence(
  node: Node,
  conditions: readonly NodeCondition[],
  client: Client,
  events: EventRecorder,
): Promise<void> {
  const { name } = node.metadata;
  const change = { status: { conditions } };
  await unlessChanged(client.resource<Node>(NODES).patch(name, undefined, MERGE, change, 'status'));
  if (conditions.some(({ type }) => type === 'Ready'))
    events.event(node, 'Normal', 'NodeNotReady', `Node ${name} status is now: NodeNotReady`);
}

async function markPods(pods: Iterable<Pod>, now: Millis, client: Client, events: EventRecorder): Promise<void> {
  for (const pod of [...pods]) {
    const condition = notReadyCondition(pod, now);
    if (condition === undefined) continue;
    const { name, namespace, uid } = pod.metadata;
    const change = { metadata: { uid }, status: { conditions: [condition] } };
    await unlessChanged(client.resource<Pod>(PODS).patch(name, namespace, MERGE, change, 'status'));
    events.event(pod, 'Warning', 'NodeNotReady', 'Node is not ready');
  }
}
