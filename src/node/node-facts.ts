/** The features of the machine and of its runtime that containers depend on, read once when the agent starts. */
import { cgroupVersion, limitsSwap } from '../platform/cgroups.ts';
import type { RuntimeFeatures } from '../runtime/runtime.ts';
import type { NodeAgentOptions } from './agent-options.ts';
import { readHugepages } from './resources/hugepages.ts';
import { openPodCgroups, type PodCgroups } from './resources/pod-cgroups.ts';

/** Facts about the machine's control groups, independent of whether lifepod or the runtime creates the Pods' groups. */
export interface CgroupFacts {
  version: 1 | 2;
  /** In the kernel's notation: 2MB, 1GB. */
  hugepageSizes: readonly string[];
  /** Whether the kernel accounts for the swap of a group. */
  limitsSwap: boolean;
}

export interface NodeFacts {
  /** undefined: the runtime chooses the control groups of containers. */
  podCgroups: PodCgroups | undefined;
  /** Passed to the part that builds the Pods' environment. */
  environment: {
    cgroups: CgroupFacts;
    cgroupParent?: PodCgroups['parentOf'];
    runtimeFeatures?: RuntimeFeatures;
  };
  /** Whether the runtime supports supplementalGroupsPolicy Strict. */
  strictGroups: boolean;
}

export async function readNodeFacts(options: NodeAgentOptions): Promise<NodeFacts> {
  const [podCgroups, hugepages, features] = await Promise.all([
    openPodCgroups(options),
    readHugepages(),
    options.runtime.features?.(options.signal),
  ]);
  return {
    podCgroups,
    environment: {
      cgroups: { version: cgroupVersion(), hugepageSizes: [...hugepages.keys()], limitsSwap: limitsSwap() },
      cgroupParent: podCgroups?.parentOf,
      runtimeFeatures: features,
    },
    strictGroups: features?.supplementalGroupsPolicy ?? false,
  };
}
