/** What the machine and its runtime can do for containers, found out once when the agent starts. */
import { cgroupVersion, limitsSwap } from '../platform/cgroups.ts';
import type { RuntimeFeatures } from '../runtime/runtime.ts';
import type { NodeAgentOptions } from './agent-options.ts';
import { readHugepages } from './resources/hugepages.ts';
import { openPodCgroups, type PodCgroups } from './resources/pod-cgroups.ts';

/** It holds whoever makes the groups of the Pods. */
export interface CgroupFacts {
  version: 1 | 2;
  /** As the kernel writes them: 2MB, 1GB. */
  hugepageSizes: readonly string[];
  /** The kernel counts the swap of a group. */
  limitsSwap: boolean;
}

export interface NodeFacts {
  /** undefined: the runtime's own. */
  podCgroups: PodCgroups | undefined;
  /** For the environment of the Pods. */
  environment: {
    cgroups: CgroupFacts;
    cgroupParent?: PodCgroups['parentOf'];
    runtimeFeatures?: RuntimeFeatures;
  };
  /** The runtime gives a process no other groups than it is told to, where that is wanted. */
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
      ...(podCgroups === undefined ? {} : { cgroupParent: podCgroups.parentOf }),
      ...(features === undefined ? {} : { runtimeFeatures: features }),
    },
    strictGroups: features?.supplementalGroupsPolicy ?? false,
  };
}
