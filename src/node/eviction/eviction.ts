/**
 * Node-pressure eviction: ends Pods before the machine runs out of memory, disk or processes, and those that have more on
 * disk than their limits allow.
 *
 * Boundary: which thresholds are met is in thresholds.ts, who goes first in ranking.ts; how a Pod ends is the core's.
 * Invariants:
 *  1. For a threshold one Pod at a time: the next one when what the last one had is free, or its time has passed; a hard
 *     threshold does not wait for the grace period of a soft one. Who breaks a limit goes whoever else does.
 *  2. Critical Pods are never evicted; nor those again that have no more time than that already.
 *  3. Looking through folders takes as long as Pods make it: memory and processes do not wait for it.
 * Source: "Node-pressure Eviction" of the v1.33 documentation; pkg/kubelet/eviction of v1.33 (order, intervals, wording).
 */
import { hasEnded } from '../../api/core/v1/pod/status/phase.ts';
import type { Pod } from '../../api/generated/types.ts';
import type { NodeEnd } from '../../lifecycle/types.ts';
import { onAbort } from '../../platform/on-abort.ts';
import type { Log, Millis, Timer, Timers } from '../../platform/platform.ts';
import { isCritical } from '../../scheduling/critical-pods.ts';
import { createEvictedPods, type EvictedPods } from './evicted-pods.ts';
import type { NodePressure } from './pressure.ts';
import { brokenDiskLimit, evictionMessage, hasDiskLimits, type PodUse, rankForEviction } from './ranking.ts';
import { hasSeparateImages } from './signals.ts';
import { conditionOf, resourceOf, type Threshold } from './thresholds.ts';
import { measure, type UsagePorts, type Wanted } from './usage.ts';

/** A poll, as upstream's: the kernel tells of none of this. Where time alone brings a change, it is looked then. */
const LOOK_MILLIS = 10_000;
/** After what a Pod had is free: the kernel and the runtime take a moment to give it back. */
const LOOK_AGAIN_MILLIS = 1_000;

export interface EvictionOptions {
  pressure: NodePressure;
  usage: Omit<UsagePorts, 'unreadable'>;
  timers: Timers;
  log: Log;
  signal: AbortSignal;
  /** The Pods that are on the node. */
  pods(): readonly Pod[];
  isStatic(pod: Pod): boolean;
  /** The time that the node has given the Pod to end, where it has. */
  endsWithinSeconds(pod: Pod): number | undefined;
  /** Whether the runtime still has containers of the Pod, with what they have written. */
  hasContainers(podUid: string): boolean;
  end(pod: Pod, by: Omit<NodeEnd, 'at'>): void;
  /** An Event on the node. */
  nodeEvent(reason: string, message: string): void;
  /** Frees the disk of what no Pod uses. */
  freeDisk(): Promise<unknown>;
}

export interface Eviction {
  /** The Pod is over, and its volumes are gone. */
  cleared(podUid: string): void;
  /** The runtime has no container of the Pod. */
  emptied(podUid: string): void;
}

const WANTED: Record<ReturnType<typeof resourceOf>, Wanted> = {
  memory: 'memory',
  'ephemeral-storage': 'disk',
  inodes: 'disk',
  pids: 'pids',
};

const isOfDisk = (threshold: Threshold): boolean => conditionOf(threshold) === 'DiskPressure';

/** What frees the node, one step at a time. */
interface Steps {
  /** Evicts the Pods that have more on disk than they may. Returns whether there were some. */
  enforceLimits(): Promise<boolean>;
  /** Evicts the Pod whose turn it is, where the threshold cannot be helped otherwise. */
  reclaim(threshold: Threshold): Promise<void>;
}

function createSteps(options: EvictionOptions, evicted: EvictedPods): Steps {
  const { pressure, log, signal } = options;
  const usage = tellingOnce(options);

  /** What can be evicted: what ends soon enough already is left alone. */
  const candidates = (graceSecondsOf: (pod: Pod) => number): Pod[] =>
    options
      .pods()
      .filter(
        (pod) =>
          !hasEnded(pod) &&
          !isCritical(pod, options.isStatic(pod)) &&
          (options.endsWithinSeconds(pod) ?? Number.POSITIVE_INFINITY) > graceSecondsOf(pod),
      );
  const graceSecondsFor =
    (threshold: Threshold) =>
    ({ spec }: Pod): number =>
      threshold.hard ? 0 : Math.min(pressure.config.maxPodGraceSeconds, spec?.terminationGracePeriodSeconds ?? 30);

  const evict = (pod: Pod, message: string, graceSeconds: number, forDisk: boolean): void => {
    const { uid = '', name, namespace } = pod.metadata;
    log.warn('evicting a Pod', { pod: `${namespace}/${name}`, message, graceSeconds });
    evicted.add(uid, graceSeconds, forDisk);
    options.end(pod, { reason: 'NodePressure', message, graceSeconds });
  };

  return {
    async enforceLimits() {
      const limited = candidates(() => 0).filter(hasDiskLimits);
      if (limited.length === 0) return false;
      const uses = await measure(limited, 'disk', usage, signal);
      const separateImages = await hasSeparateImages(pressure.folders);
      let some = false;
      for (const pod of limited) {
        const use = uses.get(pod.metadata.uid ?? '');
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
      const graceSeconds = graceSecondsFor(threshold);
      const pods = candidates(graceSeconds);
      const uses = await measure(pods, WANTED[resource], usage, signal);
      const { due, observations } = await pressure.look();
      if (!due.includes(threshold) || evicted.mustWait(threshold)) return;
      const useOf = (pod: Pod): PodUse | undefined => uses.get(pod.metadata.uid ?? '');
      // What ended or was told to end meanwhile is no candidate any more.
      const still = new Set(candidates(graceSeconds).map(({ metadata }) => metadata.uid));
      const ranked = rankForEviction(pods, useOf, threshold, { separateImages });
      const next = ranked.find(({ metadata }) => still.has(metadata.uid));
      if (next === undefined) {
        log.warn('no Pod is left to evict', { signal: threshold.signal });
        return;
      }
      const message = evictionMessage(next, useOf(next), threshold, observations);
      evict(next, message, graceSeconds(next), isOfDisk(threshold));
    },
  };
}

/** Of each Pod it is logged once that something cannot be read. */
function tellingOnce({ usage, pods, log }: EvictionOptions): UsagePorts {
  /** UIDs. */
  const told = new Set<string>();
  return {
    ...usage,
    unreadable({ metadata: { uid = '', name, namespace } }, error) {
      if (told.has(uid)) return;
      const present = new Set(pods().map(({ metadata }) => metadata.uid));
      for (const each of told) if (!present.has(each)) told.delete(each);
      told.add(uid);
      log.warn('what a Pod has on the disk cannot all be read', { pod: `${namespace}/${name}`, error: error.message });
    },
  };
}

export function startEviction(options: EvictionOptions): Eviction {
  const { timers, log, signal } = options;
  const evicted = createEvictedPods(timers, options.hasContainers);
  const pressure: NodePressure = {
    ...options.pressure,
    async look() {
      const seen = await options.pressure.look();
      lookBy(seen.changesAt ?? Number.POSITIVE_INFINITY);
      return seen;
    },
  };
  const steps = createSteps({ ...options, pressure }, evicted);
  let timer: Timer | undefined;
  let looking = false;
  let walking = false;
  /** As long as the last walk took, for the disk to be others': then limits are looked at again. */
  let restsUntil = timers.now();
  let lookAt = timers.now();

  const failed = (error: unknown): void => {
    if (!signal.aborted) log.warn('cannot look at what the node has left', { error: String(error) });
  };

  const walk = async (threshold: Threshold | undefined): Promise<void> => {
    if (walking || (threshold === undefined && timers.now() < restsUntil)) return;
    const begunAt = timers.now();
    walking = true;
    try {
      // One after the other: whoever breaks a limit may have filled the disk.
      if (!(await steps.enforceLimits()) && threshold !== undefined) await steps.reclaim(threshold);
    } catch (error) {
      failed(error);
    }
    walking = false;
    restsUntil = 2 * timers.now() - begunAt;
  };

  const look = async (): Promise<void> => {
    const { due } = await pressure.look();
    const first = due.find(({ hard }) => hard) ?? due[0];
    const threshold = first === undefined || evicted.mustWait(first) ? undefined : first;
    const ofDisk = threshold !== undefined && isOfDisk(threshold);
    void walk(ofDisk ? threshold : undefined);
    if (threshold !== undefined && !ofDisk) await steps.reclaim(threshold);
  };

  const arm = (): void => {
    timer?.cancel();
    if (!signal.aborted && !looking) timer = timers.at(lookAt, () => void turn());
  };
  const turn = async (): Promise<void> => {
    looking = true;
    lookAt = timers.now() + LOOK_MILLIS;
    await look().catch(failed);
    looking = false;
    arm();
  };
  const lookBy = (time: Millis): void => {
    if (time >= lookAt) return;
    lookAt = time;
    arm();
  };
  onAbort(signal, () => timer?.cancel());
  void turn();
  return {
    cleared(podUid) {
      if (evicted.cleared(podUid)) lookBy(timers.now() + LOOK_AGAIN_MILLIS);
    },
    emptied(podUid) {
      if (evicted.emptied(podUid)) lookBy(timers.now() + LOOK_AGAIN_MILLIS);
    },
  };
}
