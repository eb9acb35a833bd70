/** Boundary: eviction.ts decides when each step runs and for which threshold; ranking.ts decides which Pod is evicted first. */
import { hasEnded } from '../../api/core/v1/pod/status/final-phase.ts';
import type { Pod } from '../../api/generated/types.ts';
import type { NodeEnd } from '../../lifecycle/types.ts';
import { uidOf } from '../../machinery/meta.ts';
import type { Log } from '../../platform/platform.ts';
import { isCritical } from '../../scheduling/critical-pods.ts';
import type { EvictedPods } from './evicted-pods.ts';
import type { NodePressure } from './pressure.ts';
import { brokenDiskLimit, evictionMessage, hasDiskLimits, type PodUse, rankForEviction } from './ranking.ts';
import { hasSeparateImages } from './signals.ts';
import { isOfDisk, resourceOf, type StarvedResource, type Threshold } from './thresholds.ts';
import { measure, type UsagePorts, type Wanted } from './usage.ts';

export interface ReliefOptions {
  pressure: Pick<NodePressure, 'config' | 'folders' | 'look'>;
  usage: Omit<UsagePorts, 'unreadable'>;
  log: Log;
  signal: AbortSignal;
  /** Returns the Pods on the node, except those that have ended and whose volumes are removed. */
  pods(): readonly Pod[];
  isStatic(pod: Pod): boolean;
  /** Returns the grace period with which the node is ending the Pod; undefined if the node is not ending the Pod. */
  endsWithinSeconds(pod: Pod): number | undefined;
  /** Starts the termination of the Pod, or shortens its grace period if the node is already ending the Pod. */
  end(pod: Pod, by: Omit<NodeEnd, 'at'>): void;
  nodeEvent(reason: string, message: string): void;
  /** Frees disk space by removing ended containers that are no longer needed, and unused images. */
  freeDisk(): Promise<unknown>;
}

export interface Relief {
  /** Resolves to whether any Pod was evicted. */
  enforceLimits(): Promise<boolean>;
  /**
   * If freeDisk() can help, calls it first. Then evicts the first Pod in the ranking, if the threshold is still due and the eviction need
   * not wait for another Pod.
   */
  reclaim(threshold: Threshold): Promise<void>;
}

const WANTED: Record<StarvedResource, Wanted> = {
  memory: 'memory',
  'ephemeral-storage': 'disk',
  inodes: 'disk',
  pids: 'pids',
};

type GraceSeconds = (pod: Pod) => number;

const noGrace: GraceSeconds = () => 0;

const graceFor = (threshold: Threshold, maxPodGraceSeconds: number): GraceSeconds =>
  threshold.hard ? noGrace : ({ spec }) => Math.min(maxPodGraceSeconds, spec?.terminationGracePeriodSeconds ?? 30);

/** Omits Pods that the node is already ending with the same or a shorter grace period than `grace` returns. */
const candidatesOf = ({ pods, isStatic, endsWithinSeconds }: ReliefOptions, grace: GraceSeconds): Pod[] =>
  pods().filter(
    (pod) =>
      !hasEnded(pod) &&
      !isCritical(pod, isStatic(pod)) &&
      (endsWithinSeconds(pod) ?? Number.POSITIVE_INFINITY) > grace(pod),
  );

export function createRelief(options: ReliefOptions, evicted: EvictedPods): Relief {
  const { pressure, log, signal } = options;
  const usage = loggingOnce(options);

  const evict = (pod: Pod, message: string, graceSeconds: number, forDisk: boolean): void => {
    const { name, namespace } = pod.metadata;
    log.warn('evicting a Pod', { pod: `${namespace}/${name}`, message, graceSeconds });
    evicted.add(uidOf(pod), graceSeconds, forDisk);
    options.end(pod, { reason: 'NodePressure', message, graceSeconds });
  };

  return {
    async enforceLimits() {
      const limited = candidatesOf(options, noGrace).filter(hasDiskLimits);
      if (limited.length === 0) return false;
      const uses = await measure(limited, 'disk', usage, signal);
      const separateImages = await hasSeparateImages(pressure.folders);
      let some = false;
      for (const pod of limited) {
        const use = uses.get(uidOf(pod));
        const message = use === undefined ? undefined : brokenDiskLimit(pod, use, { separateImages });
        if (message === undefined) continue;
        evict(pod, message, 0, true);
        some = true;
      }
      return some;
    },
    async reclaim(threshold) {
      const resource = resourceOf(threshold);
      options.nodeEvent('EvictionThresholdMet', `Attempting to reclaim ${resource}`);
      const separateImages = await hasSeparateImages(pressure.folders);
      if (isOfDisk(threshold) && (!separateImages || threshold.signal.startsWith('imagefs'))) {
        await options.freeDisk().catch((error: Error) => log.warn('cannot free the disk', { error: error.message }));
        if (!(await pressure.look()).due.includes(threshold)) return;
      }
      const grace = graceFor(threshold, pressure.config.maxPodGraceSeconds);
      const pods = candidatesOf(options, grace);
      const uses = await measure(pods, WANTED[resource], usage, signal);
      const { due, observations } = await pressure.look();
      if (!due.includes(threshold) || evicted.mustWait(threshold)) return;
      const useOf = (pod: Pod): PodUse | undefined => uses.get(uidOf(pod));
      // During the measurement, a Pod may have ended, or the node may have started to end it.
      const still = new Set(candidatesOf(options, grace).map(uidOf));
      const next = rankForEviction(pods, useOf, threshold, { separateImages }).find((pod) => still.has(uidOf(pod)));
      if (next === undefined) log.warn('no Pod is left to evict', { signal: threshold.signal });
      else {
        const message = evictionMessage(next, useOf(next), threshold, observations);
        evict(next, message, grace(next), isOfDisk(threshold));
      }
    },
  };
}

/** Logs only the first unreadable file of each Pod. */
function loggingOnce({ usage, pods, log }: ReliefOptions): UsagePorts {
  const loggedUids = new Set<string>();
  return {
    ...usage,
    unreadable(pod, error) {
      if (loggedUids.has(uidOf(pod))) return;
      const present = new Set(pods().map(uidOf));
      for (const each of loggedUids) if (!present.has(each)) loggedUids.delete(each);
      loggedUids.add(uidOf(pod));
      const { name, namespace } = pod.metadata;
      log.warn('some files of a Pod cannot be read', { pod: `${namespace}/${name}`, error: error.message });
    },
  };
}
