/**
 * Node-pressure eviction: evicts Pods before the machine runs out of memory, disk or processes, and Pods that use more disk than
 * their limits allow.
 *
 * Boundary: thresholds.ts decides which thresholds are met, reclaim.ts evicts, src/lifecycle decides how a Pod terminates.
 * Invariants:
 *  1. One Pod at a time is evicted for a threshold: the next one when the resources of the last one are free, or its time is up. A
 *     hard threshold does not wait for the grace period of a soft one. A Pod over its disk limits is evicted without waiting.
 *  2. Critical Pods are never evicted. A Pod that must already end as soon as, or sooner than, the eviction demands is not evicted again.
 *  3. The duration of a walk through folders depends on what Pods have written: checks of memory and processes do not wait for it.
 * Source: "Node-pressure Eviction" of the v1.33 documentation; pkg/kubelet/eviction of v1.33 (order, intervals, wording).
 */
import type { Millis } from '../../machinery/time.ts';
import { onAbort } from '../../platform/on-abort.ts';
import type { Timer, Timers } from '../../platform/platform.ts';
import { createEvictedPods, type EvictedPods } from './evicted-pods.ts';
import type { NodePressure } from './pressure.ts';
import { createRelief, type Relief, type ReliefOptions } from './reclaim.ts';
import { isOfDisk, type Threshold } from './thresholds.ts';

/** The polling interval, as upstream's: the kernel sends no events. A check starts earlier when a grace period or a condition ends. */
const LOOK_MILLIS = 10_000;
/** The delay of the check after a Pod is cleared: the kernel and the runtime take a moment to free its resources. */
const LOOK_AGAIN_MILLIS = 1_000;

export interface EvictionOptions extends ReliefOptions {
  pressure: NodePressure;
  timers: Timers;
  /** Whether the runtime still has containers of the Pod, and so the files that they have written. */
  hasContainers(podUid: string): boolean;
}

export interface Eviction {
  /** The Pod has ended, and its volumes are removed. */
  cleared(podUid: string): void;
  /** The runtime no longer has a container of the Pod. */
  emptied(podUid: string): void;
}

export function startEviction(options: EvictionOptions): Eviction {
  const { timers, log, signal } = options;
  const failed = (error: unknown): void => {
    if (!signal.aborted) log.warn('cannot measure the resources that the node has left', { error: String(error) });
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

/** Selects the first hard threshold, or else the first threshold. undefined: there is none, or it must wait for a Pod to end. */
function thresholdToActOn(due: readonly Threshold[], evicted: EvictedPods): Threshold | undefined {
  const first = due.find(({ hard }) => hard) ?? due[0];
  return first === undefined || evicted.mustWait(first) ? undefined : first;
}

/**
 * Returns a function that enforces disk limits and then frees disk space for the threshold, if any. A call does nothing while another
 * one is running, so that only one walks through folders.
 */
function createDiskRelief(
  relief: Relief,
  timers: Timers,
  failed: (error: unknown) => void,
): (threshold: Threshold | undefined) => Promise<void> {
  let walking = false;
  /** The pause after a walk is as long as the walk took, so that others can use the disk; then disk limits are checked again. */
  let restsUntil = timers.now();
  return async (threshold) => {
    if (walking || (threshold === undefined && timers.now() < restsUntil)) return;
    const begunAt = timers.now();
    walking = true;
    try {
      // Limits first: a Pod that exceeds its limit may be the one that has filled the disk.
      if (!(await relief.enforceLimits()) && threshold !== undefined) await relief.reclaim(threshold);
    } catch (error) {
      failed(error);
    }
    walking = false;
    restsUntil = 2 * timers.now() - begunAt;
  };
}

interface Checks {
  /** Runs the first check; each further one starts LOOK_MILLIS after the previous one started, but not before it has ended. */
  start(): void;
  /** The next check starts no later than this time. */
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
