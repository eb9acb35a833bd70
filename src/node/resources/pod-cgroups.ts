/**
 * The tree of control groups of the Pods: <root>/kubepods, in it a group for each Guaranteed Pod and the groups burstable
 * and besteffort with those of theirs, in each Pod's group the containers', which the runtime makes.
 *
 * Boundary: container-resources.ts decides what a Pod may use; platform/cgroups.ts writes the kernel's files, and
 * platform/slices.ts calls systemd.
 * Invariants:
 *  1. One root a data folder: engines side by side have nothing in common.
 *  2. A Pod's group is there before its first container, and goes when nothing of the Pod is left; what an engine that
 *     was killed left behind, the next one removes.
 * Source: pkg/kubelet/cm of v1.33.
 */
import { createHash } from 'node:crypto';
import { basename, join, resolve } from 'node:path';
import { hasEnded } from '../../api/core/v1/pod/status/phase.ts';
import type { Pod } from '../../api/generated/types.ts';
import { type Cgroups, type OomKills, openCgroups } from '../../platform/cgroups.ts';
import type { Log } from '../../platform/platform.ts';
import { openSlices } from '../../platform/slices.ts';
import type { Capacity } from '../status/machine-facts.ts';
import { cpuShares, MIN_SHARES, podCpuRequest, podLimits, qosClass } from './container-resources.ts';
import { readHugepages } from './hugepages.ts';

export interface PodCgroupSettings {
  /** The most processes and threads of a Pod; -1: as many as the node allows. */
  podPidsLimit: number;
  /** The cgroup driver of the container runtime. */
  driver: 'cgroupfs' | 'systemd';
}

export interface PodCgroupsOptions {
  cgroups: Cgroups;
  /** cgroupRootOf(). */
  root: string;
  /** Of the node: what all Pods together may use. */
  limits: Capacity['podLimits'];
  /** The most processes and threads of a Pod; -1: as many as the node allows. */
  podPidsLimit: number;
  hugepageSizes: readonly string[];
  log: Log;
}

export interface PodCgroups {
  /** For the runtime: where the Pod's containers are to be made. */
  parentOf(pod: Pod): string;
  /** create() has to end before the runtime makes the sandbox. */
  precedesSandbox: boolean;
  /** The Pod is there, and may have begun to run before this engine did: it counts, unless it has ended. */
  add(pod: Pod): void;
  /** Makes the Pod's group; the Pod counts. May run while the runtime makes the sandbox in it, unless precedesSandbox. */
  create(pod: Pod): Promise<void>;
  /** In the containers of the Pod; undefined where the kernel does not count them, or the Pod has no group. */
  oomKills(pod: Pod): Promise<OomKills | undefined>;
  /** Nothing of the Pod runs: its group goes, and it counts no more. A next sandbox has it made again. */
  release(pod: Pod): Promise<void>;
  /** Nothing of the Pod is left; who still lives in its group is killed. */
  remove(pod: Pod): Promise<void>;
  /** Removes the groups of Pods that are not known when their turn comes; what the others request counts when it resolves. */
  removeOrphans(isKnown: (uid: string) => boolean): Promise<void>;
}

/** Below the mount point of the control groups. */
export const cgroupRootOf = (dataDir: string): string =>
  `/lifepod-${createHash('sha256').update(resolve(dataDir)).digest('hex').slice(0, 8)}`;

/** Of the engine of a data folder on this machine; undefined where none are wanted. */
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

/** Removes the groups of all Pods of the data folder's engine, of either cgroup driver. */
export async function removePodCgroups(dataDir: string): Promise<void> {
  const root = cgroupRootOf(dataDir);
  const cgroups = await openCgroups();
  await cgroups.remove(root);
  await (await openSlices(cgroups)).remove(root);
}

const POD_GROUP = /^pod(?<uid>.+)$/;

/** Makes the groups above the Pods', or brings those that are there up to date. */
export async function createPodCgroups(options: PodCgroupsOptions): Promise<PodCgroups> {
  const { cgroups, log, hugepageSizes, podPidsLimit } = options;
  const kubepods = join(options.root, 'kubepods');
  const folders = {
    Guaranteed: kubepods,
    Burstable: join(kubepods, 'burstable'),
    BestEffort: join(kubepods, 'besteffort'),
  };
  /** What each Burstable Pod requests of the CPUs, in thousandths. */
  const burstable = new Map<string, number>();
  const groupOf = (pod: Pod): string => join(folders[qosClass(pod)], `pod${pod.metadata.uid}`);

  /** The write that is under way. */
  let sharing: Promise<void> | undefined;
  /** All Burstable Pods together get of the CPUs beside the others what they request. One write at a time, the last one right. */
  const share = (): void => {
    if (sharing !== undefined) return;
    const wanted = (): number => cpuShares([...burstable.values()].reduce((sum, each) => sum + each, 0));
    const write = async (): Promise<void> => {
      for (let written: number | undefined; written !== wanted(); ) {
        written = wanted();
        await cgroups.set(folders.Burstable, { cpuShares: written }).catch((error: unknown) => {
          log.warn('the CPU shares of Burstable Pods stay as they are', { error: String(error) });
        });
      }
      sharing = undefined;
    };
    sharing = write();
  };
  const count = (pod: Pod): void => {
    if (qosClass(pod) !== 'Burstable') return;
    burstable.set(pod.metadata.uid ?? '', podCpuRequest(pod));
    share();
  };
  const forget = (pod: Pod): void => {
    if (burstable.delete(pod.metadata.uid ?? '')) share();
  };

  const { cpuMilli, ...limits } = options.limits;
  await cgroups.set(kubepods, { cpuShares: cpuShares(cpuMilli), ...limits }).catch((error: NodeJS.ErrnoException) => {
    // Version 1 gives no group less memory than it has.
    if (error.code !== 'EBUSY') throw error;
    log.warn('the Pods use more memory than is left to them: what is reserved holds from a later start', {
      memoryBytes: limits.memoryBytes,
    });
  });
  await cgroups.set(folders.BestEffort, { cpuShares: MIN_SHARES });
  // What Pods there are will be told; until then those that run keep what they have.
  if (!(await cgroups.children(kubepods)).includes(basename(folders.Burstable)))
    await cgroups.set(folders.Burstable, { cpuShares: MIN_SHARES });
  return {
    parentOf: (pod) => cgroups.parentName(groupOf(pod)),
    precedesSandbox: cgroups.isMadeByRuntimeToo,
    add(pod) {
      if (!hasEnded(pod)) count(pod);
    },
    async create(pod) {
      count(pod);
      await cgroups.set(groupOf(pod), podLimits(pod, hugepageSizes, podPidsLimit));
    },
    oomKills: (pod) => cgroups.oomKills(groupOf(pod)),
    async release(pod) {
      forget(pod);
      await cgroups.removeEmpty(groupOf(pod));
    },
    async remove(pod) {
      forget(pod);
      // Of a Pod that only the runtime remembered nobody knows the class.
      await Promise.all(Object.values(folders).map((folder) => cgroups.remove(join(folder, `pod${pod.metadata.uid}`))));
    },
    async removeOrphans(isKnown) {
      for (const folder of Object.values(folders)) {
        for (const name of await cgroups.children(folder)) {
          const uid = POD_GROUP.exec(name)?.groups?.['uid'];
          if (uid === undefined || isKnown(uid)) continue;
          log.info('removing the control group of a Pod that is gone', { uid });
          await cgroups
            .remove(join(folder, name))
            .catch((error: unknown) => log.warn('a control group stays', { uid, error: String(error) }));
        }
      }
      await sharing;
    },
  };
}
