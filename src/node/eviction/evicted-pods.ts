/** The Pods that were evicted and have not ended yet: further evictions wait for them. */
import type { Millis } from '../../machinery/time.ts';
import type { Timers } from '../../platform/platform.ts';
import type { Threshold } from './thresholds.ts';

/** How long after its grace period a Pod may take to end before further evictions stop waiting for it. */
const CLEANUP_MILLIS = 30_000;

interface EvictedPod {
  until: Millis;
  hard: boolean;
  /** Evicted for disk space: the Pod counts as ended only when its containers are removed, with what they have written. */
  forDisk: boolean;
  cleared: boolean;
}

export interface EvictedPods {
  add(podUid: string, graceSeconds: number, forDisk: boolean): void;
  /** Whether an eviction for this threshold must wait. A hard threshold does not wait for the grace period of a soft one. */
  mustWait(threshold: Threshold): boolean;
  /** The Pod has ended, and its volumes are removed. cleared() and emptied() return whether evictions no longer wait for the Pod. */
  cleared(podUid: string): boolean;
  /** The runtime may no longer have a container of the Pod. */
  emptied(podUid: string): boolean;
}

export function createEvictedPods(timers: Timers, hasContainers: (podUid: string) => boolean): EvictedPods {
  /** By UID. */
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
