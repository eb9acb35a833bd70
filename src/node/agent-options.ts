import type { Client } from '../client/client.ts';
import type { SharedInformers } from '../client/shared-informers.ts';
import type { NodeFacts } from '../lifecycle/types.ts';
import type { Millis } from '../machinery/time.ts';
import type { Platform } from '../platform/platform.ts';
import type { ContainerRuntime, ContainerStreams } from '../runtime/runtime.ts';
import type { NodePressure } from './eviction/pressure.ts';
import type { UsagePorts } from './eviction/usage.ts';
import type { GarbagePolicy } from './images/garbage-policy.ts';
import type { RotationLimits } from './logs/log-rotation.ts';
import type { PodCgroupSettings } from './resources/pod-cgroups.ts';
import type { Capacity } from './status/machine-facts.ts';

export interface NodeAgentOptions extends Platform {
  client: Client;
  informers: SharedInformers;
  runtime: ContainerRuntime & ContainerStreams;
  runtimeName: string;
  nodeName: string;
  nodeIps: readonly string[];
  dataDir: string;
  capacity: Capacity;
  clusterDns: readonly string[];
  clusterDomain: string;
  /**
   * This limit applies to the extension by defer containers and, separately, to the extension by outages. Absent:
   * DEFAULT_MAX_EXTENSION_SECONDS.
   */
  maxGracePeriodExtensionSeconds?: number;
  /** false: a Pod keeps its phase while its defer containers run. Otherwise, the phase is Terminating during that time. */
  terminatingPhase?: boolean;
  /** When the previous agent was last known to run (readLastSignOfLife); absent: unknown, or there was no previous agent. */
  lastSignOfLife?: Millis | undefined;
  /** Absent: DEFAULT_MAX_PARALLEL_PULLS. */
  maxParallelImagePulls?: number;
  /** `keep`: references of images that are never removed. Absent: no image is removed. */
  imageGarbage?: { policy: GarbagePolicy; keep: readonly string[] };
  logRotation?: Partial<RotationLimits>;
  /** Absent: the runtime chooses the control groups of containers. */
  podCgroups?: PodCgroupSettings;
  /** The result of parseAllowedSysctls(); absent: only the safe sysctls are allowed. */
  allowedUnsafeSysctls?: readonly string[];
  /** The resolv.conf(5) file that Pods inherit from the node. Absent or '': readNodeResolver() reads the machine's own files. */
  resolvConf?: string;
  /** Absent: the node evicts no Pod. */
  eviction?: { pressure: NodePressure } & Pick<UsagePorts, 'containerUsage'>;
  signal: AbortSignal;
}

export function factsOf({ nodeIps, runtimeName, ...options }: NodeAgentOptions): NodeFacts {
  return {
    ips: nodeIps,
    runtimeName,
    maxGracePeriodExtensionSeconds: options.maxGracePeriodExtensionSeconds,
    terminatingPhase: options.terminatingPhase === false ? false : undefined,
  };
}
