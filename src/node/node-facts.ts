import { cgroupVersion, limitsSwap } from '../platform/control-groups/cgroups.ts';
import { together } from '../platform/settle.ts';
import type { RuntimeFeatures } from '../runtime/runtime.ts';
import type { NodeAgentOptions } from './agent-options.ts';
import { readHugepages } from './resources/hugepages.ts';
import { openPodCgroups, type PodCgroups } from './resources/pod-cgroups.ts';

/** These facts do not depend on whether lifepod or the runtime creates the Pods' groups. */
export interface CgroupFacts {
  version: 1 | 2;
  /** The sizes that the machine supports, in the kernel's notation: 2MB, 1GB. */
  hugepageSizes: readonly string[];
  limitsSwap: boolean;
}

export interface NodeFacts {
  /** Undefined: the runtime chooses the control groups of containers. */
  podCgroups: PodCgroups | undefined;
  environment: {
    cgroups: CgroupFacts;
    cgroupParent?: PodCgroups['parentOf'];
    runtimeFeatures?: RuntimeFeatures;
  };
  /** Whether the runtime supports supplementalGroupsPolicy Strict. */
  strictGroups: boolean;
}

export async function readNodeFacts(options: NodeAgentOptions): Promise<NodeFacts> {
  // If one part fails, for example because the start is interrupted, the groups that another part creates must be complete before the
  // caller removes them.
  const [podCgroups, hugepages, features] = await together([
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
