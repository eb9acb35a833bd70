/**
 * Manages the control groups of the Pods. <root>/kubepods contains a group for each Guaranteed Pod, and the groups burstable and besteffort
 * with the groups of the other Pods. In the group of a Pod, the runtime creates the groups of the containers.
 *
 * Invariants:
 * - Each data folder has its own root, so that several engines on a machine do not interfere.
 * - A Pod's group exists before its first container is created. Groups that a killed engine left behind are removed by the next engine.
 * Source: pkg/kubelet/cm of v1.33.
 */
import { createHash } from 'node:crypto';
import { basename, join, resolve } from 'node:path';
import { hasEnded } from '../../api/core/v1/pod/status/final-phase.ts';
import type { Pod } from '../../api/generated/types.ts';
import { type Cgroups, type OomKills, openCgroups } from '../../platform/control-groups/cgroups.ts';
import { openSlices } from '../../platform/control-groups/slices.ts';
import type { Log } from '../../platform/platform.ts';
import type { Capacity } from '../status/machine-facts.ts';
import { createBurstableShares } from './burstable-shares.ts';
import { cpuShares, MIN_SHARES, podLimits, qosClass } from './container-resources.ts';
import { readHugepages } from './hugepages.ts';

export interface PodCgroupSettings {
  /** The maximum number of processes and threads of a Pod. -1: no limit per Pod. */
  podPidsLimit: number;
  driver: 'cgroupfs' | 'systemd';
}

export interface PodCgroupsOptions {
  cgroups: Cgroups;
  /** From cgroupRootOf(). */
  root: string;
  /** For all Pods of the node together. */
  limits: Capacity['podLimits'];
  /** -1: no limit per Pod. */
  podPidsLimit: number;
  hugepageSizes: readonly string[];
  log: Log;
}

export interface PodCgroups {
  /** Returns the parent group of the Pod's containers, in the notation of the runtime's cgroup driver. */
  parentOf(pod: Pod): string;
  /** Whether create() must finish before the runtime creates the sandbox. */
  precedesSandbox: boolean;
  /** Registers a Pod that may have started before this engine. If the Pod is Burstable and has not ended, its CPU request counts. */
  add(pod: Pod): void;
  /** Creates the Pod's group and counts its CPU request. May run while the runtime creates the sandbox, unless precedesSandbox is true. */
  create(pod: Pod): Promise<void>;
  /** Undefined on cgroup v1, or if the Pod's group or its memory controller is missing. */
  oomKills(pod: Pod): Promise<OomKills | undefined>;
  /**
   * Called when nothing of the Pod runs. Removes the Pod's group, except parts that still contain processes, and no longer counts the Pod's
   * CPU request. Before a new sandbox, call create() again.
   */
  release(pod: Pod): Promise<void>;
  /** Called when nothing of the Pod is left. Kills processes that are still in the Pod's group, and removes the group. */
  remove(pod: Pod): Promise<void>;
  /** Also waits until the CPU shares of the Burstable Pods are written, or could not be written. */
  removeOrphans(isKnown: (uid: string) => boolean): Promise<void>;
}

/** Returns a path relative to the mount point of the control groups. */
export const cgroupRootOf = (dataDir: string): string =>
  `/lifepod-${createHash('sha256').update(resolve(dataDir)).digest('hex').slice(0, 8)}`;

/** Resolves to undefined if the runtime chooses the control groups. */
export async function openPodCgroups(options: {
  dataDir: string;
  log: Log;
  capacity: Capacity;
  podCgroups?: PodCgroupSettings;
}): Promise<PodCgroups | undefined> {
  if (options.podCgroups === undefined) return undefined;
  const open = options.podCgroups.driver === 'systemd' ? openSlices : openCgroups;
  const [cgroups, hugepages] = await Promise.all([open(), readHugepages()]);
  const hugepageSizes = [...hugepages.keys()];
  return createPodCgroups({
    cgroups,
    hugepageSizes,
    root: cgroupRootOf(options.dataDir),
    limits: options.capacity.podLimits,
    podPidsLimit: options.podCgroups.podPidsLimit,
    log: options.log,
  });
}

export async function removePodCgroups(dataDir: string): Promise<void> {
  const root = cgroupRootOf(dataDir);
  const cgroups = await openCgroups();
  await cgroups.remove(root);
  await (await openSlices(cgroups)).remove(root);
}

const POD_GROUP = /^pod(?<uid>.+)$/;

/**
 * Resolves with the number of Pods of the data folder that have processes, whether or not their runtime answers. Undefined if lifepod has
 * no groups: the machine has been restarted, `lifepod down` has removed them, or the runtime chooses the groups.
 */
export async function countPodsWithProcesses(
  dataDir: string,
  drivers?: readonly Pick<Cgroups, 'children' | 'hasProcesses'>[],
): Promise<number | undefined> {
  const cgroups = await openCgroups();
  const kubepods = join(cgroupRootOf(dataDir), 'kubepods');
  let count: number | undefined;
  for (const groups of drivers ?? [cgroups, await openSlices(cgroups)]) {
    for (const parent of Object.values(classGroups(kubepods))) {
      const names = await groups.children(parent);
      if (names.length > 0) count ??= 0;
      for (const name of names)
        if (POD_GROUP.test(name) && (await groups.hasProcesses(join(parent, name)))) count = (count ?? 0) + 1;
    }
  }
  return count;
}

type ClassGroups = Readonly<Record<'Guaranteed' | 'Burstable' | 'BestEffort', string>>;

const classGroups = (kubepods: string): ClassGroups => ({
  Guaranteed: kubepods,
  Burstable: join(kubepods, 'burstable'),
  BestEffort: join(kubepods, 'besteffort'),
});

export async function createPodCgroups(options: PodCgroupsOptions): Promise<PodCgroups> {
  const { cgroups, log, hugepageSizes, podPidsLimit } = options;
  const groups = classGroups(join(options.root, 'kubepods'));
  const groupOf = (pod: Pod): string => join(groups[qosClass(pod)], `pod${pod.metadata.uid}`);
  const shares = createBurstableShares(cgroups, groups.Burstable, log);
  await setUpClassGroups(options, groups);
  return {
    parentOf: (pod) => cgroups.parentName(groupOf(pod)),
    precedesSandbox: cgroups.isMadeByRuntimeToo,
    add(pod) {
      if (!hasEnded(pod)) shares.add(pod);
    },
    async create(pod) {
      shares.add(pod);
      await cgroups.set(groupOf(pod), podLimits(pod, hugepageSizes, podPidsLimit));
    },
    oomKills: (pod) => cgroups.oomKills(groupOf(pod)),
    async release(pod) {
      shares.remove(pod);
      await cgroups.removeEmpty(groupOf(pod));
    },
    async remove(pod) {
      shares.remove(pod);
      // Try all QoS classes, since the class is unknown if the Pod no longer exists in the API.
      await Promise.all(Object.values(groups).map((group) => cgroups.remove(join(group, `pod${pod.metadata.uid}`))));
    },
    async removeOrphans(isKnown) {
      for (const group of Object.values(groups)) await removeOrphansIn(group, cgroups, isKnown, log);
      await shares.written();
    },
  };
}

async function setUpClassGroups({ cgroups, limits, log }: PodCgroupsOptions, groups: ClassGroups): Promise<void> {
  const { Guaranteed: kubepods, Burstable, BestEffort } = groups;
  const { cpuMilli, ...others } = limits;
  await cgroups.set(kubepods, { cpuShares: cpuShares(cpuMilli), ...others }).catch((error: NodeJS.ErrnoException) => {
    // On cgroup v1, the kernel refuses a memory limit below the current usage.
    if (error.code !== 'EBUSY') throw error;
    log.warn('cannot limit the memory of all Pods, which use more than the limit: retrying at the next start', {
      memoryBytes: limits.memoryBytes,
    });
  });
  await cgroups.set(BestEffort, { cpuShares: MIN_SHARES });
  // Keep the shares of an existing group until the running Pods have been added.
  if (!(await cgroups.children(kubepods)).includes(basename(Burstable)))
    await cgroups.set(Burstable, { cpuShares: MIN_SHARES });
}

async function removeOrphansIn(
  group: string,
  cgroups: Cgroups,
  isKnown: (uid: string) => boolean,
  log: Log,
): Promise<void> {
  for (const name of await cgroups.children(group)) {
    const uid = POD_GROUP.exec(name)?.groups?.['uid'];
    if (uid === undefined || isKnown(uid)) continue;
    log.info('removing the control group of a Pod that no longer exists', { uid });
    await cgroups
      .remove(join(group, name))
      .catch((error: unknown) => log.warn('cannot remove a control group', { uid, error: String(error) }));
  }
}
