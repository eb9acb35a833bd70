/** What a node agent is made of, and what it is told of its node. */
import type { Client } from '../client/client.ts';
import type { NodeFacts } from '../lifecycle/types.ts';
import type { Millis } from '../machinery/time.ts';
import type { Platform } from '../platform/platform.ts';
import type { ContainerRuntime, ContainerStreams } from '../runtime/runtime.ts';
import type { NodePressure } from './eviction/pressure.ts';
import type { UsagePorts } from './eviction/usage.ts';
import type { GarbagePolicy } from './images/garbage-collection.ts';
import type { RotationLimits } from './logs/log-rotation.ts';
import type { PodCgroupSettings } from './resources/pod-cgroups.ts';
import type { Capacity } from './status/machine-facts.ts';

export interface NodeAgentOptions extends Platform {
  client: Client;
  runtime: ContainerRuntime & ContainerStreams;
  runtimeName: string;
  nodeName: string;
  nodeIps: readonly string[];
  dataDir: string;
  capacity: Capacity;
  clusterDns: readonly string[];
  clusterDomain: string;
  /** Absent: DEFAULT_MAX_EXTENSION_SECONDS. */
  maxGracePeriodExtensionSeconds?: number;
  /** false: the phase of a Pod stays what it is while its defer containers run. Absent: it is Terminating. */
  terminatingPhase?: boolean;
  /** When the agent before was last known to live (readLastSignOfLife); absent: unknown, or there was none. */
  lastSignOfLife?: Millis | undefined;
  /** Absent: DEFAULT_MAX_PARALLEL_PULLS. */
  maxParallelImagePulls?: number;
  /** When unused images are removed, and which stay. Absent: none is. */
  imageGarbage?: { policy: GarbagePolicy; keep: readonly string[] };
  /** In place of ROTATION_LIMITS. */
  logRotation?: Partial<RotationLimits>;
  /** Absent: the runtime puts containers where it likes. */
  podCgroups?: PodCgroupSettings;
  /** parseAllowedSysctls(); absent: none but the safe ones. */
  allowedUnsafeSysctls?: readonly string[];
  /** The resolver configuration that Pods take from the node; absent or '': the machine's. */
  resolvConf?: string;
  /** Absent: no Pod is evicted. */
  eviction?: { pressure: NodePressure } & Pick<UsagePorts, 'containerUsage'>;
  signal: AbortSignal;
}

/** What the core is given of the node. */
export function factsOf({ nodeIps, runtimeName, ...options }: NodeAgentOptions): NodeFacts {
  const { maxGracePeriodExtensionSeconds } = options;
  return {
    ips: nodeIps,
    runtimeName,
    ...(maxGracePeriodExtensionSeconds === undefined ? {} : { maxGracePeriodExtensionSeconds }),
    ...(options.terminatingPhase === false ? { terminatingPhase: false } : {}),
  };
}
