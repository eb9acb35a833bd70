/**
 * Delays the replacement of failed Pods of DaemonSets. On each node, the first failed Pod is replaced at once, the second at least 1 s
 * later. The delay doubles with each further failure, up to 15 minutes. Source: failedPodsBackoff of pkg/controller/daemon of v1.33
 * (behavior).
 */
import type { DaemonSet } from '../../api/generated/types.ts';
import type { Millis } from '../../machinery/time.ts';

const BASE_MILLIS = 1_000;
const MAX_MILLIS = 15 * 60_000;

export interface FailedPodBackOff {
  /** Returns when a failed Pod may be replaced; undefined if now. `key` identifies the DaemonSet, its generation and the node. */
  until(key: string, now: Millis): Millis | undefined;
  /** Records that a failed Pod is replaced now. Forgets all keys without a failure in the last 30 minutes. */
  failed(key: string, now: Millis): void;
  /** Forgets the keys with this prefix. */
  forget(begin: string): void;
  size(): number;
}

export function createBackOff(): FailedPodBackOff {
  const entries = new Map<string, { millis: number; at: Millis }>();
  return {
    until(key, now) {
      const entry = entries.get(key);
      return entry !== undefined && entry.at + entry.millis > now ? entry.at + entry.millis : undefined;
    },
    failed(key, now) {
      for (const [each, { at }] of entries) if (now - at > 2 * MAX_MILLIS) entries.delete(each);
      const entry = entries.get(key);
      entries.set(key, { millis: entry === undefined ? BASE_MILLIS : Math.min(entry.millis * 2, MAX_MILLIS), at: now });
    },
    size: () => entries.size,
    forget(begin) {
      for (const key of [...entries.keys()]) if (key.startsWith(begin)) entries.delete(key);
    },
  };
}

export const earliest = (a: Millis | undefined, b: Millis | undefined): Millis | undefined =>
  a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);

export interface Retries {
  /** Whether a failed Pod on the node may be replaced now. */
  mayRetry(node: string): boolean;
  failed(node: string): void;
  /** Returns the earliest time at which a Pod that mayRetry() refused may be replaced; undefined if it refused none. */
  next(): Millis | undefined;
}

/** Returns the back-off for one decision. The delays start again with each generation, because its Pods may fail for other reasons. */
export function retriesOf(backOff: FailedPodBackOff, { metadata }: DaemonSet, now: Millis): Retries {
  let next: Millis | undefined;
  const keyOf = (node: string): string => `${metadata.uid}/${metadata.generation}/${node}`;
  return {
    next: () => next,
    failed: (node) => backOff.failed(keyOf(node), now),
    mayRetry(node) {
      const until = backOff.until(keyOf(node), now);
      next = earliest(next, until);
      return until === undefined;
    },
  };
}
