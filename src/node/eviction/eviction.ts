/**
 * Node-pressure eviction: evicts Pods before the machine runs out of memory, disk or processes, and Pods that use more disk than
 * their limits allow.
 *
 * Boundary: thresholds.ts decides which thresholds are met, ranking.ts the order of eviction, src/lifecycle how a Pod terminates.
 * Invariants:
 *  1. One Pod at a time is evicted for a threshold: the next one when the resources of the last one are free, or its time is up. A
 *     hard threshold does not wait for the grace period of a soft one. A Pod over its disk limits is evicted without waiting.
 *  2. Critical Pods are never evicted. A Pod that must already end as soon as, or sooner than, the eviction demands is not evicted again.
 *  3. The duration of a walk through folders depends on what Pods have written: checks of memory and processes do not wait for it.
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

/** The polling interval, as upstream's: the kernel sends no events. A check comes sooner when a grace period or a condition ends. */
const LOOK_MILLIS = 10_000;
/** The delay of the check after a Pod is cleared: the kernel and the runtime take a moment to free its resources. */
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
  /** The grace period that the node has given the Pod to end; undefined: the node has not ended it. */
  endsWithinSeconds(pod: Pod): number | undefined;
  /** Whether the runtime still has containers of the Pod, and so the files that they have written. */
  hasContainers(podUid: string): boolean;
  end(pod: Pod, by: Omit<NodeEnd, 'at'>): void;
  /** Records an Event on the Node. */
  nodeEvent(reason: string, message: string): void;
  /** Frees disk space that no Pod uses. */
  freeDisk(): Promise<unknown>;
}

export interface Eviction {
  /** The Pod has ended, and its volumes are removed. */
  cleared(podUid: string): void;
  /** The runtime no longer has a container of the Pod. */
  emptied(podUid: string): void;
}

const WANTED: Record<ReturnType<typeof resourceOf>, Wanted> = {
  memory: 'memory',
  'ephemeral-storage': 'disk',
  inodes: 'disk',
  pids: 'pids',
};

const isOfDisk = (threshold: Threshold): boolean => conditionOf(threshold) === 'DiskPressure';

/** The steps that relieve the node. */
interface Steps {
  /** Evicts the Pods that exceed their disk limits. Returns whether there were any. */
  enforceLimits(): Promise<boolean>;
  /** Frees unused disk space where that helps; evicts the first Pod in the ranking if the threshold is still met. */
  reclaim(threshold: Threshold): Promise<void>;
}

function createSteps(options: EvictionOptions, evicted: EvictedPods): Steps {
  const { pressure, log, signal } = options;
  const usage = loggingOnce(options);

  /** The Pods that can be evicted, without those that already end within the grace period. */
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
      // A Pod that has ended or started to terminate during the measurement is no longer a candidate.
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

/** The ports with `unreadable` implemented: it logs once per Pod that some of its files cannot be read. */
function loggingOnce({ usage, pods, log }: EvictionOptions): UsagePorts {
  const loggedUids = new Set<string>();
  return {
    ...usage,
    unreadable({ metadata: { uid = '', name, namespace } }, error) {
      if (loggedUids.has(uid)) return;
      const present = new Set(pods().map(({ metadata }) => metadata.uid));
      for (const each of loggedUids) if (!present.has(each)) loggedUids.delete(each);
      loggedUids.add(uid);
      log.warn('some files of a Pod cannot be read', { pod: `${namespace}/${name}`, error: error.message });
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
  /** The pause after a walk is as long as the walk took, so that others can use the disk; then disk limits are checked again. */
  let restsUntil = timers.now();
  let lookAt = timers.now();

  const failed = (error: unknown): void => {
    if (!signal.aborted) log.warn('cannot measure the resources that the node has left', { error: String(error) });
  };

  const walk = async (threshold: Threshold | undefined): Promise<void> => {
    if (walking || (threshold === undefined && timers.now() < restsUntil)) return;
    const begunAt = timers.now();
    walking = true;
    try {
      // Limits first: a Pod that exceeds its limit may be the one that has filled the disk.
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
