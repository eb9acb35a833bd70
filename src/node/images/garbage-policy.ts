/** When unused images are removed. Pure. Source: "Garbage Collection" (v1.33); pkg/kubelet/images/image_gc_manager.go. */
import type { Millis } from '../../machinery/time.ts';

export interface GarbagePolicy {
  /** Percent of the disk in use at which the removal of images starts. 100: never. */
  highThreshold: number;
  /** Percent of the disk in use at which the removal stops. */
  lowThreshold: number;
  /** A younger image is not removed. */
  minAgeMillis: Millis;
  /** An image unused for this long is removed whatever the disk usage; counted from the agent's start at the earliest. 0: never. */
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

/** How many bytes to free; undefined: the disk is below the high threshold. Throws if the disk has no capacity. */
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

/** The earliest of the times that are defined. */
export function earliestOf(times: readonly (Millis | undefined)[]): Millis | undefined {
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}
