/** Starts the node agent and the node status reporter, and connects them to the API server and the runtime. */
import type { Client } from '../client/client.ts';
import type { SharedInformers } from '../client/shared-informers.ts';
import type { Millis } from '../machinery/time.ts';
import { familyOf } from '../network/families.ts';
import { type NodeAgent, startNodeAgent } from '../node/agent.ts';
import type { NodePressure } from '../node/eviction/pressure.ts';
import type { Capacity } from '../node/status/machine-facts.ts';
import { type NodeStatusReporter, startNodeStatus } from '../node/status/node-status.ts';
import { startPodMetrics } from '../node/usage/pod-metrics.ts';
import { createNodeReports } from '../node/usage/reports.ts';
import type { Metrics } from '../platform/metrics.ts';
import type { Platform } from '../platform/platform.ts';
import { together } from '../platform/settle.ts';
import { CLUSTER_DOMAIN } from './engine-api.ts';
import { agentSettings, kubeletConfiguration, nodeCapacity, openPressure, type Shutdown } from './engine-node.ts';
import type { EngineRuntime } from './engine-runtime.ts';
import { machineAddresses, type NodeAddresses, openNodeAddresses } from './node-address.ts';
import type { lateNode } from './node-placeholder.ts';
import type { Settings } from './settings.ts';
import { SERVED_VERSION } from './version.ts';

export interface PartOptions extends Platform {
  client: Client;
  informers: SharedInformers;
  signal: AbortSignal;
}

export interface Machine {
  pressure: NodePressure;
  capacity: Capacity;
  addresses: NodeAddresses;
}

/** `gateway` is the node's IPv4 address if the machine has no default route of IPv4. */
export async function openMachine(
  settings: Settings,
  { runtime, gateway }: { runtime: EngineRuntime['runtime']; gateway: string },
  { timers }: Platform,
  signal: AbortSignal,
): Promise<Machine> {
  const families = settings.podCidr.split(',').map(familyOf);
  const [pressure, capacity, addresses] = await together([
    openPressure(settings, runtime, timers, signal),
    nodeCapacity(settings),
    openNodeAddresses(machineAddresses(families, gateway, signal)),
  ]);
  return { pressure, capacity, addresses };
}

export interface NodeParts {
  agent: NodeAgent;
  reporter: NodeStatusReporter;
}

export async function startNode(
  settings: Settings,
  options: PartOptions,
  parts: {
    runtime: EngineRuntime;
    machine: Machine;
    shutdown: Shutdown;
    dnsIp: string;
    lastSignOfLife: Millis | undefined;
  },
): Promise<NodeParts> {
  const { runtime, machine, shutdown, dnsIp, lastSignOfLife } = parts;
  const { pressure, capacity, addresses } = machine;
  const [agent, reporter] = await together([
    startNodeAgent({
      ...options,
      runtime: runtime.runtime,
      runtimeName: runtime.name,
      ...agentSettings(settings, runtime),
      nodeIps: addresses.ips,
      capacity,
      lastSignOfLife,
      clusterDns: [dnsIp],
      clusterDomain: CLUSTER_DOMAIN,
      eviction: { pressure, containerUsage: runtime.runtime.containerUsage },
    }),
    startNodeStatus({
      ...options,
      runtime: runtime.runtime,
      nodeName: settings.nodeName,
      podCidrs: settings.podCidr.split(','),
      internalIps: addresses.read,
      capacity,
      version: SERVED_VERSION,
      pressure,
      problems: shutdown.problems,
    }),
  ]);
  return { agent, reporter };
}

/**
 * Connects the API server to the node, starts the metrics of Pods, and updates the node's status when the runtime, its images or the
 * pressure change.
 */
export function connectNode(
  settings: Settings,
  options: PartOptions,
  { agent, reporter }: NodeParts,
  to: {
    node: ReturnType<typeof lateNode>;
    runtime: EngineRuntime;
    pressure: NodePressure;
    informers: SharedInformers;
    metrics: Metrics;
    dnsIp: string;
  },
): void {
  const { node, runtime, pressure, informers, metrics, dnsIp } = to;
  const { nodeName, dataDir } = settings;
  // The metrics follow Namespaces, which the user of a node may not follow, so they use the informers of the engine.
  startPodMetrics({ ...options, informers, nodeName, metrics });
  const reports = createNodeReports({
    ...options,
    runtime: runtime.runtime,
    nodeName,
    pods: agent.pods,
    configuration: kubeletConfiguration(settings, dnsIp),
    metrics,
    dataDir,
  });
  node.connect({ ...agent.connection, ...reports });
  runtime.onChange(() => void reporter.check());
  pressure.onChange(() => void reporter.check());
  agent.onImagesChange(reporter.imagesChanged);
}
