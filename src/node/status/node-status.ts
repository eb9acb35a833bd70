/**
 * Invariants:
 * - The status is checked at the latest ten seconds after the previous check has ended. It is written when it has changed, and at least
 *   about every five minutes.
 * - The Node is read before each comparison, so that changes by other clients are taken into account.
 * Source: "Nodes" of the v1.33 documentation; pkg/kubelet/nodestatus (reasons, messages and Events).
 */

import type { Node, NodeCondition, NodeStatus } from '../../api/generated/types.ts';
import { NODES } from '../../api/resources.ts';
import type { SharedInformers } from '../../client/shared-informers.ts';
import { isApiError } from '../../machinery/status.ts';
import { onAbort } from '../../platform/on-abort.ts';
import type { Log, Timer, Timers } from '../../platform/platform.ts';
import type { ContainerRuntime, RuntimeFeatures } from '../../runtime/runtime.ts';
import type { NodePressure } from '../eviction/pressure.ts';
import { type Capacity, readSystemInfo } from './machine-facts.ts';
import { nodeConditions } from './node-conditions.ts';
import { createNodeEvents } from './node-events.ts';
import { startNodeLease } from './node-lease.ts';
import { type RegistrationOptions, registerNode } from './registration.ts';
import { createRuntimeState, type RuntimeState, type RuntimeStateSource } from './runtime-state.ts';

export interface NodeStatusOptions extends RegistrationOptions {
  informers: SharedInformers;
  runtime: Pick<ContainerRuntime, 'notReady' | 'version' | 'listImages' | 'features'>;
  /** At most one address of each family, IPv4 first. */
  internalIps(): Promise<readonly string[]>;
  capacity: Capacity;
  pressure: Pick<NodePressure, 'conditions'>;
  /** Returns further reasons why the node is not ready. */
  problems?(): string[];
  /** Reported as the kubelet's version, such as v1.33.0+lifepod. */
  version: string;
  /** Absent: readSystemInfo() reads the system information from this machine. */
  systemInfo?: typeof readSystemInfo;
  timers: Timers;
  log: Log;
  signal: AbortSignal;
}

export interface NodeStatusReporter {
  /** The check starts after the end of a report in progress. A failure is only logged. */
  check(): Promise<void>;
  /** Lists the images again and reports the status. */
  imagesChanged(): void;
}

const CHECK_MILLIS = 10_000;
const HEARTBEAT_MILLIS = 5 * 60_000;

/**
 * Registers the Node, reports its status and renews its Lease until `signal` aborts. Resolves after the first report and the first attempt
 * to renew the Lease. Rejects if registration fails.
 */
export async function startNodeStatus(options: NodeStatusOptions): Promise<NodeStatusReporter> {
  const { timers, log, signal } = options;
  const runtime = createRuntimeState({ ...options, answered: () => void check() });
  const reports = await createStatusReports(options, runtime);
  let timer: Timer | undefined;
  let running = Promise.resolve();
  /** The report that starts after the current one has ended. All calls of check() before that start return this promise. */
  let next: Promise<void> | undefined;

  function check(): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    timer?.cancel();
    if (next !== undefined) return next;
    next = running
      .then(() => {
        next = undefined;
        return reports.report();
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
  await Promise.all([check(), startNodeLease({ ...options, node: reports.node })]);
  return {
    check,
    imagesChanged() {
      runtime.imagesChanged();
      void check();
    },
  };
}

interface StatusReports {
  node(): Node;
  /** Writes the status if it has changed or a heartbeat is due. Registers the Node again if it was deleted. */
  report(): Promise<void>;
}

async function createStatusReports(options: NodeStatusOptions, runtime: RuntimeStateSource): Promise<StatusReports> {
  const { client, nodeName, timers, log, signal } = options;
  const nodes = client.resource<Node>(NODES);
  const nodeEvents = createNodeEvents(options);
  let node = await registerNode(options);
  let writtenAt = Number.NEGATIVE_INFINITY;

  async function writeStatus(): Promise<void> {
    const heartbeat = timers.now() - writtenAt >= HEARTBEAT_MILLIS;
    if (heartbeat) runtime.imagesChanged();
    const state = await runtime.read();
    node = await nodes.get(nodeName);
    // Read the clock only now: the wait for a hanging runtime takes up to 30 s.
    const now = timers.now();
    const status = await readStatus(options, state, node.status?.conditions ?? [], now);
    nodeEvents.reported(node.status, status);
    if (!heartbeat && sameJson(reported(status, status), reported(node.status, status))) return;
    // A patch keeps the conditions of other clients and does not conflict with concurrent changes of labels. Without `$patch`, the API
    // would merge addresses by their type, which two InternalIPs share; with it, the API replaces them, as for upstream's kubelet.
    const type = 'application/strategic-merge-patch+json';
    const addresses = [{ $patch: 'replace' }, ...(status.addresses ?? [])];
    node = await nodes.patch(nodeName, undefined, type, { status: { ...status, addresses } }, 'status');
    writtenAt = now;
  }

  return {
    node: () => node,
    async report() {
      try {
        await writeStatus();
      } catch (error) {
        if (signal.aborted) return;
        log.warn('cannot report the state of the node', { error: String(error) });
        if (!isApiError(error, 'NotFound')) return;
        node = await registerNode(options);
        writtenAt = Number.NEGATIVE_INFINITY;
      }
    },
  };
}

const sameJson = (a: unknown, b: unknown): boolean => JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));

/** Sorts the keys, so that equal objects have equal JSON. */
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

/** Omits the heartbeat times, which always change. `next`: the status to report; conditions of other types belong to other clients. */
const reported = (status: NodeStatus | undefined, next: NodeStatus): unknown => ({
  addresses: status?.addresses,
  allocatable: status?.allocatable,
  capacity: status?.capacity,
  nodeInfo: status?.nodeInfo,
  features: status?.features,
  runtimeHandlers: status?.runtimeHandlers,
  images: status?.images ?? [],
  conditions: next.conditions?.map(({ type }) => {
    const condition = status?.conditions?.find((other) => other.type === type);
    return { ...condition, lastHeartbeatTime: undefined };
  }),
});

async function readStatus(
  { capacity, internalIps, nodeName, pressure, version, problems, systemInfo = readSystemInfo }: NodeStatusOptions,
  runtime: RuntimeState,
  before: readonly NodeCondition[],
  now: number,
): Promise<NodeStatus> {
  const notReady = [...runtime.problems, ...(problems?.() ?? [])];
  const conditions = nodeConditions(pressure.conditions(), notReady, before, now);
  return {
    addresses: [
      ...(await internalIps()).map((address) => ({ type: 'InternalIP', address })),
      { type: 'Hostname', address: nodeName },
    ],
    capacity: capacity.capacity,
    allocatable: capacity.allocatable,
    nodeInfo: await systemInfo(runtime.version, version),
    images: [...runtime.images],
    ...(runtime.features === undefined ? {} : featureStatus(runtime.features)),
    conditions,
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
