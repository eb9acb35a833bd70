import type { Millis } from '../../machinery/time.ts';
import type { Timers } from '../../platform/platform.ts';
import type { Threshold } from './thresholds.ts';

/** Further evictions wait no longer than this after the end of the Pod's grace period. */
const CLEANUP_MILLIS = 30_000;

interface EvictedPod {
  until: Millis;
  hard: boolean;
  /** Whether evictions wait until the Pod's containers, and with them the files that they have written, are removed. */
  forDisk: boolean;
  /** Whether the Pod has ended and its volumes are removed. */
  cleared: boolean;
}

export interface EvictedPods {
  add(podUid: string, graceSeconds: number, forDisk: boolean): void;
  /** A hard threshold does not wait for Pods that were evicted with a grace period. */
  mustWait(threshold: Threshold): boolean;
  /** Called after the Pod has ended and its volumes are removed. Returns whether this ends the wait for the Pod. */
  cleared(podUid: string): boolean;
  /** Called when the runtime has no container of the Pod, possibly several times. Returns whether this ends the wait for the Pod. */
  emptied(podUid: string): boolean;
}

export function createEvictedPods(timers: Timers, hasContainers: (podUid: string) => boolean): EvictedPods {
  const pods = new Map<string, EvictedPod>();
  const settle = (podUid: string): boolean => {
    const pod = pods.get(podUid);
    if (pod === undefined || !pod.cleared || (pod.forDisk && hasContainers(podUid))) return false;
    return pods.delete(podUid);
  };
  return {
    add(podUid, graceSeconds, forDisk) {
      const until = timers.now() + graceSeconds * 1000 + CLEANUP_MILLIS;
      pods.set(podUid, { until, hard: graceSeconds === 0, forDisk, cleared: false });
    },
    mustWait(threshold) {
      for (const [uid, { until }] of pods) if (until <= timers.now()) pods.delete(uid);
      return [...pods.values()].some(({ hard }) => hard || !threshold.hard);
    },
    cleared(podUid) {
      const pod = pods.get(podUid);
      if (pod !== undefined) pod.cleared = true;
      return settle(podUid);
    },
    emptied: settle,
  };
}
