/**
 * The Node object of this machine, its conditions, and the Lease that says that it lives.
 * Boundary: reads the machine (machine.ts) and the runtime's readiness; writes the Node's status and the Lease.
 * Invariants: one timer; a status is written when it changed and every five minutes, else nothing but the Lease is.
 * Source: "Nodes" and "Leases" of the v1.33 documentation; pkg/kubelet/nodestatus (reasons and messages).
 */
import type { Lease, Node, NodeCondition, NodeStatus } from '../api/generated/types.ts';
import type { Client } from '../client/client.ts';
import { isApiError } from '../machinery/status.ts';
import { formatMicroTime, formatTime } from '../machinery/time.ts';
import type { Log, Timer, Timers } from '../platform/platform.ts';
import type { ContainerRuntime } from '../runtime/runtime.ts';
import { architecture, type Capacity, readCapacity, readPressure, readSystemInfo } from './machine.ts';

export interface NodeStatusOptions {
  client: Client;
  nodeName: string;
  runtime: ContainerRuntime;
  podCidr: string;
  internalIp: string;
  /** On the disk that holds images, logs and volumes. */
  dataDir: string;
  /** Of the kubelet, as v1.33.0+lifepod. */
  version: string;
  timers: Timers;
  log: Log;
  signal: AbortSignal;
}

export interface NodeStatusReporter {
  capacity: Capacity;
  /** Looks at the runtime now: after its start or its end. */
  check(): Promise<void>;
}

const LEASE_NAMESPACE = 'kube-node-lease';
const LEASE_DURATION_SECONDS = 40;
const CHECK_MILLIS = 10_000;
const HEARTBEAT_MILLIS = 5 * 60_000;

/** Resolves when the Node is registered with its first status; goes on until `signal` aborts. Rejects where it cannot register. */
export async function startNodeStatus(options: NodeStatusOptions): Promise<NodeStatusReporter> {
  const { client, nodeName, timers, log, signal } = options;
  const nodes = client.resource<Node>({ group: '', version: 'v1', resource: 'nodes' });
  const leases = client.resource<Lease>({ group: 'coordination.k8s.io', version: 'v1', resource: 'leases' });
  const capacity = await readCapacity(options.dataDir);
  let node = await register();
  let lease: Lease | undefined;
  let writtenAt = Number.NEGATIVE_INFINITY;
  let timer: Timer | undefined;
  let running: Promise<void> | undefined;

  async function register(): Promise<Node> {
    const wanted = nodeObject(options);
    try {
      const present = await nodes.get(nodeName);
      const labels = { ...present.metadata.labels, ...wanted.metadata.labels };
      const spec = { ...present.spec, podCIDR: options.podCidr, podCIDRs: [options.podCidr] };
      if (sameJson(labels, present.metadata.labels) && sameJson(spec, present.spec)) return present;
      return await nodes.update({ ...present, metadata: { ...present.metadata, labels }, spec });
    } catch (error) {
      if (!isApiError(error, 'NotFound')) throw error;
      return nodes.create(wanted);
    }
  }

  async function writeStatus(): Promise<void> {
    const now = timers.now();
    const before = node.status?.conditions ?? [];
    const status = await readStatus(options, capacity, before, now);
    if (now - writtenAt < HEARTBEAT_MILLIS && sameJson(withoutHeartbeat(status), withoutHeartbeat(node.status))) return;
    // A patch: conditions of others stay, and labels that change meanwhile are no conflict.
    const type = 'application/strategic-merge-patch+json';
    node = await nodes.patch(nodeName, undefined, type, { status }, 'status');
    writtenAt = now;
  }

  async function renewLease(): Promise<void> {
    const renewTime = formatMicroTime(timers.now());
    lease ??= await leases.get(nodeName, LEASE_NAMESPACE).catch((error: unknown) => {
      if (isApiError(error, 'NotFound')) return undefined;
      throw error;
    });
    lease =
      lease === undefined
        ? await leases.create(leaseObject(node, renewTime))
        : await leases.update({
            ...lease,
            spec: { ...lease.spec, holderIdentity: nodeName, leaseDurationSeconds: LEASE_DURATION_SECONDS, renewTime },
          });
  }

  async function round(): Promise<void> {
    const results = await Promise.allSettled([renewLease(), writeStatus()]);
    for (const result of results) {
      if (result.status === 'fulfilled' || signal.aborted) continue;
      log.warn('cannot report the state of the node', { error: String(result.reason) });
      // Someone else changed or removed them: read them anew in the next round.
      lease = undefined;
      if (isApiError(result.reason, 'NotFound')) {
        node = await register();
        writtenAt = Number.NEGATIVE_INFINITY;
      }
    }
  }

  function check(): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    timer?.cancel();
    running = (running ?? Promise.resolve())
      .then(round)
      .catch((error: Error) => {
        if (!signal.aborted) log.warn('cannot report the state of the node', { error: error.message });
      })
      .then(() => {
        timer?.cancel();
        if (!signal.aborted) timer = timers.at(timers.now() + CHECK_MILLIS, () => void check());
      });
    return running;
  }

  signal.addEventListener('abort', () => timer?.cancel(), { once: true });
  await check();
  return { capacity, check };
}

const sameJson = (a: unknown, b: unknown): boolean => JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));

/** With keys in order, so that equal objects have equal text. */
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

/** The parts that this node reports, without the times that change each time. */
const withoutHeartbeat = (status: NodeStatus | undefined): unknown => ({
  addresses: status?.addresses,
  allocatable: status?.allocatable,
  capacity: status?.capacity,
  nodeInfo: status?.nodeInfo,
  conditions: status?.conditions?.map(({ lastHeartbeatTime: _, ...condition }) => condition),
});

function nodeObject({ nodeName, podCidr }: NodeStatusOptions): Node {
  const arch = architecture();
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: nodeName,
      labels: {
        'beta.kubernetes.io/arch': arch,
        'beta.kubernetes.io/os': 'linux',
        'kubernetes.io/arch': arch,
        'kubernetes.io/hostname': nodeName,
        'kubernetes.io/os': 'linux',
      },
    },
    spec: { podCIDR: podCidr, podCIDRs: [podCidr] },
  };
}

function leaseObject(node: Node, renewTime: string): Lease {
  const { name, uid = '' } = node.metadata;
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      name,
      namespace: LEASE_NAMESPACE,
      ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name, uid }],
    },
    spec: { holderIdentity: name, leaseDurationSeconds: LEASE_DURATION_SECONDS, renewTime },
  };
}

async function readStatus(
  { runtime, internalIp, nodeName, dataDir, version, signal }: NodeStatusOptions,
  capacity: Capacity,
  before: readonly NodeCondition[],
  now: number,
): Promise<NodeStatus> {
  const pressure = await readPressure(dataDir);
  let runtimeVersion = '';
  let problems: string[];
  try {
    problems = await runtime.notReady(signal);
    const { name, version: number } = await runtime.version(signal);
    runtimeVersion = `${name}://${number.replace(/^v/, '')}`;
  } catch (error) {
    signal.throwIfAborted();
    problems = [`container runtime is down: ${(error as Error).message}`];
  }
  const judge = (type: string, status: boolean, reason: string, message: string): NodeCondition =>
    condition(before, now, type, status, reason, message);
  return {
    addresses: [
      { type: 'InternalIP', address: internalIp },
      { type: 'Hostname', address: nodeName },
    ],
    capacity: capacity.capacity,
    allocatable: capacity.allocatable,
    nodeInfo: await readSystemInfo(runtimeVersion, version),
    conditions: [
      pressure.memory
        ? judge('MemoryPressure', true, 'KubeletHasInsufficientMemory', 'kubelet has insufficient memory available')
        : judge('MemoryPressure', false, 'KubeletHasSufficientMemory', 'kubelet has sufficient memory available'),
      pressure.disk
        ? judge('DiskPressure', true, 'KubeletHasDiskPressure', 'kubelet has disk pressure')
        : judge('DiskPressure', false, 'KubeletHasNoDiskPressure', 'kubelet has no disk pressure'),
      pressure.pids
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

/** The time of the last transition stays while the status does. */
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
