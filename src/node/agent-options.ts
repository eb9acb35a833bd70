/** Defines the options of a node agent: the client of the API, the runtime, and the settings of the node. */
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
   * The maximum extension of a Pod's grace period by its defer containers and, separately, by outages. Absent:
   * DEFAULT_MAX_EXTENSION_SECONDS.
   */
  maxGracePeriodExtensionSeconds?: number;
  /** false: a Pod keeps its phase while its defer containers run. Otherwise, the phase is Terminating during that time. */
  terminatingPhase?: boolean;
  /** When the previous agent was last known to run (readLastSignOfLife); absent: unknown, or there was no previous agent. */
  lastSignOfLife?: Millis | undefined;
  /** The maximum number of images that are pulled at the same time. Absent: DEFAULT_MAX_PARALLEL_PULLS. */
  maxParallelImagePulls?: number;
  /** `policy`: when unused images are removed. `keep`: references of images that are never removed. Absent: no image is removed. */
  imageGarbage?: { policy: GarbagePolicy; keep: readonly string[] };
  /** Overrides single values of ROTATION_LIMITS. */
  logRotation?: Partial<RotationLimits>;
  /** The settings of the Pods' control groups. Absent: the runtime chooses the control groups of containers. */
  podCgroups?: PodCgroupSettings;
  /** The result of parseAllowedSysctls(); absent: only the safe sysctls are allowed. */
  allowedUnsafeSysctls?: readonly string[];
  /** The resolv.conf(5) file that Pods inherit from the node. Absent or '': readNodeResolver() reads the machine's own files. */
  resolvConf?: string;
  /** The ports that eviction needs. Absent: the node evicts no Pod. */
  eviction?: { pressure: NodePressure } & Pick<UsagePorts, 'containerUsage'>;
  signal: AbortSignal;
}

/** Returns the facts of the node on which the decisions of src/lifecycle depend. */
export function factsOf({ nodeIps, runtimeName, ...options }: NodeAgentOptions): NodeFacts {
  return {
    ips: nodeIps,
    runtimeName,
    maxGracePeriodExtensionSeconds: options.maxGracePeriodExtensionSeconds,
    terminatingPhase: options.terminatingPhase === false ? false : undefined,
  };
}
