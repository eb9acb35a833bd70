/**
 * Evicts Pods before the machine runs out of memory, disk space or processes (node-pressure eviction), and Pods that use more disk space
 * than their limits allow.
 *
 * Invariants:
 * - For thresholds, Pods are evicted one at a time: the next Pod is evicted after the previous Pod's resources are free, or 30 s after its
 *   grace period. A Pod above its disk limits is evicted without waiting.
 * - Checks of memory and processes do not wait for a walk through folders, whose duration depends on the files that Pods have written.
 * Source: "Node-pressure Eviction" of the v1.33 documentation; pkg/kubelet/eviction of v1.33 (order, intervals, wording).
 */
import type { Millis } from '../../machinery/time.ts';
import { onAbort } from '../../platform/on-abort.ts';
import type { Timer, Timers } from '../../platform/platform.ts';
import { createEvictedPods, type EvictedPods } from './evicted-pods.ts';
import type { NodePressure } from './pressure.ts';
import { createRelief, type Relief, type ReliefOptions } from './reclaim.ts';
import { isOfDisk, type Threshold } from './thresholds.ts';

/** Upstream's interval. Polling is necessary because the kernel does not report changes of all these resources. */
const LOOK_MILLIS = 10_000;
/**
 * The longest delay of the next check after the wait for an evicted Pod has ended. Meanwhile, the kernel and the runtime free the Pod's
 * resources.
 */
const LOOK_AGAIN_MILLIS = 1_000;

export interface EvictionOptions extends ReliefOptions {
  pressure: NodePressure;
  timers: Timers;
  /** Whether the runtime still has containers of the Pod, and therefore the files that they have written. */
  hasContainers(podUid: string): boolean;
}

export interface Eviction {
  /** Called after the Pod has ended and its volumes are removed. */
  cleared(podUid: string): void;
  /** Called, possibly several times, when the runtime has no container of the Pod. */
  emptied(podUid: string): void;
}

export function startEviction(options: EvictionOptions): Eviction {
  const { timers, log, signal } = options;
  const failed = (error: unknown): void => {
    if (!signal.aborted) log.warn('cannot measure the available resources of the node', { error: String(error) });
  };
  const evicted = createEvictedPods(timers, options.hasContainers);
  const checks = createChecks(timers, signal, () => look().catch(failed));
  const pressure: NodePressure = {
    ...options.pressure,
    async look() {
      const seen = await options.pressure.look();
      checks.by(seen.changesAt ?? Number.POSITIVE_INFINITY);
      return seen;
    },
  };
  const relief = createRelief({ ...options, pressure }, evicted);
  const relieveDisk = createDiskRelief(relief, timers, failed);

  const look = async (): Promise<void> => {
    const threshold = thresholdToActOn((await pressure.look()).due, evicted);
    const ofDisk = threshold !== undefined && isOfDisk(threshold);
    void relieveDisk(ofDisk ? threshold : undefined);
    if (threshold !== undefined && !ofDisk) await relief.reclaim(threshold);
  };

  checks.start();
  return {
    cleared(podUid) {
      if (evicted.cleared(podUid)) checks.by(timers.now() + LOOK_AGAIN_MILLIS);
    },
    emptied(podUid) {
      if (evicted.emptied(podUid)) checks.by(timers.now() + LOOK_AGAIN_MILLIS);
    },
  };
}

/** Prefers hard thresholds. Returns undefined if an eviction must wait for an evicted Pod. */
function thresholdToActOn(due: readonly Threshold[], evicted: EvictedPods): Threshold | undefined {
  const first = due.find(({ hard }) => hard) ?? due[0];
  return first === undefined || evicted.mustWait(first) ? undefined : first;
}

/**
 * The returned function evicts the Pods above their disk limits. If no Pod is above its limits, it reclaims the resource of the threshold.
 * A call does nothing while another one is running, so that only one walk through folders runs at a time.
 */
function createDiskRelief(
  relief: Relief,
  timers: Timers,
  failed: (error: unknown) => void,
): (threshold: Threshold | undefined) => Promise<void> {
  let walking = false;
  /**
   * Calls without a threshold do nothing until this time. The pause after a walk is as long as the walk, so that other programs can use the
   * disk.
   */
  let restsUntil = timers.now();
  return async (threshold) => {
    if (walking || (threshold === undefined && timers.now() < restsUntil)) return;
    const begunAt = timers.now();
    walking = true;
    try {
      // Check the limits first: a Pod that exceeds its limit may have filled the disk.
      if (!(await relief.enforceLimits()) && threshold !== undefined) await relief.reclaim(threshold);
    } catch (error) {
      failed(error);
    }
    walking = false;
    restsUntil = 2 * timers.now() - begunAt;
  };
}

interface Checks {
  /**
   * Starts the first check. Each further check starts LOOK_MILLIS after the start of the previous one, or earlier because of by(), but not
   * before the previous one has ended.
   */
  start(): void;
  /** Makes the next check start at `time` at the latest, or when the check that is running has ended. */
  by(time: Millis): void;
}

/** `check` must not reject. */
function createChecks(timers: Timers, signal: AbortSignal, check: () => Promise<void>): Checks {
  let timer: Timer | undefined;
  let checking = false;
  let nextAt = timers.now();
  const arm = (): void => {
    timer?.cancel();
    if (!signal.aborted && !checking) timer = timers.at(nextAt, () => void run());
  };
  const run = async (): Promise<void> => {
    checking = true;
    nextAt = timers.now() + LOOK_MILLIS;
    await check();
    checking = false;
    arm();
  };
  onAbort(signal, () => timer?.cancel());
  return {
    start: () => void run(),
    by(time) {
      if (time >= nextAt) return;
      nextAt = time;
      arm();
    },
  };
}
