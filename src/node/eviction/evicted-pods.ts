/** The Pods that were evicted and are not over yet: what further evictions wait for. */
import type { Millis } from '../../machinery/time.ts';
import type { Timers } from '../../platform/platform.ts';
import type { Threshold } from './thresholds.ts';

/** Beyond its grace period, for a Pod to be over. */
const CLEANUP_MILLIS = 30_000;

interface EvictedPod {
  until: Millis;
  hard: boolean;
  /** What its containers have written is wanted back. */
  forDisk: boolean;
  cleared: boolean;
}

export interface EvictedPods {
  add(podUid: string, graceSeconds: number, forDisk: boolean): void;
  /** A hard threshold does not wait for the grace period of a soft one. */
  mustWait(threshold: Threshold): boolean;
  /** The Pod is over, and its volumes are gone. Returns whether somebody waited for it, as emptied() does. */
  cleared(podUid: string): boolean;
  /** The runtime may have no container of the Pod any more. */
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
