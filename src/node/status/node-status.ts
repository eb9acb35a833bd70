/**
 * Registers the Node object of this machine and reports its status.
 * Boundary: reads the machine (machine-facts.ts) and the runtime's state; writes the Node's status. node-lease.ts renews the Lease.
 * Invariants: one timer; the status is written when it changed and every five minutes; the Node is read before each comparison, so
 * that changes by other clients are taken into account.
 * Source: "Nodes" of the v1.33 documentation; pkg/kubelet/nodestatus (reasons, messages and Events).
 */

import type { Node, NodeCondition, NodeStatus } from '../../api/generated/types.ts';
import { NODES } from '../../api/resources.ts';
import type { Client } from '../../client/client.ts';
import { isApiError } from '../../machinery/status.ts';
import { formatTime } from '../../machinery/time.ts';
import { onAbort } from '../../platform/on-abort.ts';
import type { Log, Timer, Timers } from '../../platform/platform.ts';
import type { ContainerRuntime, RuntimeFeatures } from '../../runtime/runtime.ts';
import type { NodePressure } from '../eviction/pressure.ts';
import { architecture, type Capacity, readSystemInfo } from './machine-facts.ts';
import { createNodeEvents } from './node-events.ts';
import { startNodeLease } from './node-lease.ts';
import { createRuntimeState, type RuntimeState } from './runtime-state.ts';

export interface NodeStatusOptions {
  client: Client;
  nodeName: string;
  runtime: Pick<ContainerRuntime, 'notReady' | 'version' | 'listImages' | 'features'>;
  podCidr: string;
  /** The current address. */
  internalIp(): Promise<string>;
  capacity: Capacity;
  pressure: Pick<NodePressure, 'conditions'>;
  /** Further reasons why the node is not ready. */
  problems?(): string[];
  /** Reported as the kubelet's version, such as v1.33.0+lifepod. */
  version: string;
  timers: Timers;
  log: Log;
  signal: AbortSignal;
}

export interface NodeStatusReporter {
  /** Checks the runtime and reports the status now: called when the runtime has started or ended. */
  check(): Promise<void>;
  /** The runtime's images may have changed: lists them again and reports the status. */
  imagesChanged(): void;
}

const CHECK_MILLIS = 10_000;
const HEARTBEAT_MILLIS = 5 * 60_000;

/** Resolves when the Node is registered with its first status; continues until `signal` aborts. Rejects if registration fails. */
export async function startNodeStatus(options: NodeStatusOptions): Promise<NodeStatusReporter> {
  const { client, nodeName, timers, log, signal } = options;
  const nodes = client.resource<Node>(NODES);
  const runtime = createRuntimeState({ ...options, answered: () => void check() });
  const nodeEvents = createNodeEvents(options);
  let node = await register();
  let writtenAt = Number.NEGATIVE_INFINITY;
  let timer: Timer | undefined;
  let running = Promise.resolve();
  /** The round that starts after the current one; all callers of check() in the meantime wait for it. */
  let next: Promise<void> | undefined;

  async function register(): Promise<Node> {
    const { metadata, spec } = nodeObject(options);
    for (;;) {
      try {
        // A patch does not conflict with concurrent writes of other clients.
        const patch = { metadata: { labels: metadata.labels }, spec };
        return await nodes.patch(nodeName, undefined, 'application/merge-patch+json', patch);
      } catch (error) {
        if (!isApiError(error, 'NotFound')) throw error;
      }
      try {
        return await nodes.create(nodeObject(options));
      } catch (error) {
        if (!isApiError(error, 'AlreadyExists')) throw error;
      }
    }
  }

  async function writeStatus(): Promise<void> {
    const heartbeat = timers.now() - writtenAt >= HEARTBEAT_MILLIS;
    if (heartbeat) runtime.imagesChanged();
    const state = await runtime.read();
    node = await nodes.get(nodeName);
    // Read the clock only now: the wait for a hanging runtime takes up to 30 s.
    const now = timers.now();
    const status = await readStatus(options, state, node.status?.conditions ?? [], now);
    nodeEvents.reported(node.status, status);
    if (!heartbeat && sameJson(withoutHeartbeat(status), withoutHeartbeat(node.status))) return;
    // A patch keeps the conditions of other clients and does not conflict with concurrent changes of labels.
    const type = 'application/strategic-merge-patch+json';
    node = await nodes.patch(nodeName, undefined, type, { status }, 'status');
    writtenAt = now;
  }

  async function round(): Promise<void> {
    try {
      await writeStatus();
    } catch (error) {
      if (signal.aborted) return;
      log.warn('cannot report the state of the node', { error: String(error) });
      if (!isApiError(error, 'NotFound')) return;
      node = await register();
      writtenAt = Number.NEGATIVE_INFINITY;
    }
  }

  function check(): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    timer?.cancel();
    if (next !== undefined) return next;
    next = running
      .then(() => {
        next = undefined;
        return round();
      })
      .catch((error: Error) => {
        if (!signal.aborted) log.warn('cannot report the state of the node', { error: error.message });
      })
      .then(() => {
        timer?.cancel();
        if (!signal.aborted) timer = timers.at(timers.now() + CHECK_MILLIS, () => void check());
      });
    running = next;
    return next;
  }

  onAbort(signal, () => timer?.cancel());
  await Promise.all([check(), startNodeLease({ ...options, node: () => node })]);
  return {
    check,
    imagesChanged() {
      runtime.imagesChanged();
      void check();
    },
  };
}

const sameJson = (a: unknown, b: unknown): boolean => JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));

/** Sorts keys, so that equal objects have equal JSON. */
const sorted = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.map(sorted)
    : value !== null && typeof value === 'object'
      ? Object.fromEntries(
          Object.entries(value)
            .filter(([, inner]) => inner !== undefined)
            .sort(([a], [b]) => (a < b ? -1 : 1))
            .map(([key, inner]) => [key, sorted(inner)]),
        )
      : value;

/** The parts of the status that this node reports, without the heartbeat times, which always change. */
const withoutHeartbeat = (status: NodeStatus | undefined): unknown => ({
  addresses: status?.addresses,
  allocatable: status?.allocatable,
  capacity: status?.capacity,
  nodeInfo: status?.nodeInfo,
  features: status?.features,
  runtimeHandlers: status?.runtimeHandlers,
  images: status?.images ?? [],
  conditions: status?.conditions?.map(({ lastHeartbeatTime: _, ...condition }) => condition),
});

export function nodeLabels(nodeName: string): Record<string, string> {
  const arch = architecture();
  return {
    'beta.kubernetes.io/arch': arch,
    'beta.kubernetes.io/os': 'linux',
    'kubernetes.io/arch': arch,
    'kubernetes.io/hostname': nodeName,
    'kubernetes.io/os': 'linux',
  };
}

function nodeObject({ nodeName, podCidr }: NodeStatusOptions): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: nodeName,
      labels: nodeLabels(nodeName),
    },
    spec: { podCIDR: podCidr, podCIDRs: [podCidr] },
  };
}

async function readStatus(
  { capacity, internalIp, nodeName, pressure, version, problems: others }: NodeStatusOptions,
  runtime: RuntimeState,
  before: readonly NodeCondition[],
  now: number,
): Promise<NodeStatus> {
  const pressures = pressure.conditions();
  const problems = [...runtime.problems, ...(others?.() ?? [])];
  const judge = (type: string, status: boolean, reason: string, message: string): NodeCondition =>
    condition(before, now, type, status, reason, message);
  return {
    addresses: [
      { type: 'InternalIP', address: await internalIp() },
      { type: 'Hostname', address: nodeName },
    ],
    capacity: capacity.capacity,
    allocatable: capacity.allocatable,
    nodeInfo: await readSystemInfo(runtime.version, version),
    images: [...runtime.images],
    ...(runtime.features === undefined ? {} : featureStatus(runtime.features)),
    conditions: [
      pressures.has('MemoryPressure')
        ? judge('MemoryPressure', true, 'KubeletHasInsufficientMemory', 'kubelet has insufficient memory available')
        : judge('MemoryPressure', false, 'KubeletHasSufficientMemory', 'kubelet has sufficient memory available'),
      pressures.has('DiskPressure')
        ? judge('DiskPressure', true, 'KubeletHasDiskPressure', 'kubelet has disk pressure')
        : judge('DiskPressure', false, 'KubeletHasNoDiskPressure', 'kubelet has no disk pressure'),
      pressures.has('PIDPressure')
        ? judge('PIDPressure', true, 'KubeletHasInsufficientPID', 'kubelet has insufficient PID available')
        : judge('PIDPressure', false, 'KubeletHasSufficientPID', 'kubelet has sufficient PID available'),
      problems.length === 0
        ? judge('Ready', true, 'KubeletReady', 'kubelet is posting ready status')
        : judge(
            'Ready',
            false,
            'KubeletNotReady',
            problems.length === 1 ? (problems[0] as string) : `[${problems.join(', ')}]`,
          ),
    ],
  };
}

/** userNamespaces is false whatever the runtime supports, because lifepod does not map user IDs. */
const featureStatus = ({ supplementalGroupsPolicy, handlers }: RuntimeFeatures): NodeStatus => ({
  features: { supplementalGroupsPolicy },
  runtimeHandlers: handlers.map(({ name, recursiveReadOnlyMounts }) => ({
    name,
    features: { recursiveReadOnlyMounts, userNamespaces: false },
  })),
});

/** lastTransitionTime is kept while the status stays the same. */
function condition(
  before: readonly NodeCondition[],
  now: number,
  type: string,
  isTrue: boolean,
  reason: string,
  message: string,
): NodeCondition {
  const status = isTrue ? 'True' : 'False';
  const old = before.find((other) => other.type === type);
  return {
    type,
    status,
    lastHeartbeatTime: formatTime(now),
    lastTransitionTime: old?.status === status ? (old.lastTransitionTime ?? formatTime(now)) : formatTime(now),
    reason,
    message,
  };
}
