/** The functions are pure. Source: "Garbage Collection" (v1.33); pkg/kubelet/images/image_gc_manager.go. */
import type { Millis } from '../../machinery/time.ts';

export interface GarbagePolicy {
  /** The percentage of disk usage at which the removal of images starts. 100: never because of disk usage. */
  highThreshold: number;
  /** The percentage of disk usage at which the removal of images stops. */
  lowThreshold: number;
  /** An image that was first seen less than this long ago is not removed to free disk space. */
  minAgeMillis: Millis;
  /**
   * An image that has been unused for this long is removed even if the disk has enough space. Time before the agent's start does not count.
   * 0: no image is removed for this reason.
   */
  maxAgeMillis: Millis;
}

export const DEFAULT_GARBAGE_POLICY: GarbagePolicy = {
  highThreshold: 85,
  lowThreshold: 80,
  minAgeMillis: 120_000,
  maxAgeMillis: 0,
};

export interface DiskSpace {
  capacityBytes: number;
  availableBytes: number;
}

/** Returns undefined if the usage is below the high threshold or the high threshold is 100. Throws if the capacity is 0. */
export function bytesToFree(
  { capacityBytes, availableBytes }: DiskSpace,
  { highThreshold, lowThreshold }: GarbagePolicy,
): number | undefined {
  if (capacityBytes === 0) throw new Error('invalid capacity 0 on image filesystem');
  const available = Math.min(availableBytes, capacityBytes);
  const usedPercent = 100 - Math.floor((available * 100) / capacityBytes);
  if (highThreshold === 100 || usedPercent < highThreshold) return undefined;
  return Math.floor((capacityBytes * (100 - lowThreshold)) / 100) - available;
}

export function earliestOf(times: readonly (Millis | undefined)[]): Millis | undefined {
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}
