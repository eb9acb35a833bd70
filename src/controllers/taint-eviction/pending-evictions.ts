/**
 * Tracks which Pods are to be evicted, and when. The tolerationSeconds for a taint count from the time at which the taint was first seen to
 * limit the stay of the Pod. Not-ready and unreachable taints replace each other and count as one.
 */
import type { Pod, Taint } from '../../api/generated/types.ts';
import { uidOf } from '../../machinery/meta.ts';
import type { Millis } from '../../machinery/time.ts';
import { onAbort } from '../../platform/on-abort.ts';
import type { Timer, Timers } from '../../platform/platform.ts';
import { EVICTING_KEYS, type LimitedStay } from '../../scheduling/node-taints.ts';
import { SUSPENDED_MILLIS } from '../controller.ts';
import { WAKE_UP_MILLIS } from './known-taints.ts';

export interface PendingEvictions {
  has(uid: string): boolean;
  /** Calls `due` when one of the stays is over, unless schedule() or cancel() is called before. `stays` must not be empty. */
  schedule(pod: Pod, stays: readonly LimitedStay[]): void;
  /** Whether one of the stays is over; false if no eviction of the Pod is pending. */
  isDue(uid: string, stays: readonly LimitedStay[]): boolean;
  cancel(uid: string): void;
}

interface Pending {
  /** By taint: the time from which its seconds count. A suspension makes it later. */
  since: Map<string, Millis>;
  timer: Timer;
}

const keyOf = ({ key, value = '' }: Taint): string => (EVICTING_KEYS.includes(key) ? 'state' : `${key}=${value}`);

export function pendingEvictions(timers: Timers, signal: AbortSignal, due: (pod: Pod) => void): PendingEvictions {
  const pending = new Map<string, Pending>();
  onAbort(signal, () => {
    for (const { timer } of pending.values()) timer.cancel();
  });
  const cancel = (uid: string): void => {
    pending.get(uid)?.timer.cancel();
    pending.delete(uid);
  };
  const endOf = (since: ReadonlyMap<string, Millis> | undefined, stays: readonly LimitedStay[]): Millis =>
    stays.reduce(
      (end, { taint, seconds }) => Math.min(end, (since?.get(keyOf(taint)) ?? timers.now()) + seconds * 1000),
      Number.POSITIVE_INFINITY,
    );
  const start = (pod: Pod, before: ReadonlyMap<string, Millis> | undefined, stays: readonly LimitedStay[]): void => {
    const since = new Map(stays.map(({ taint }) => [keyOf(taint), before?.get(keyOf(taint)) ?? timers.now()]));
    const at = endOf(since, stays);
    const timer = timers.at(at, () => {
      const lateMillis = timers.now() - at;
      if (lateMillis < SUSPENDED_MILLIS) return due(pod);
      start(pod, new Map([...since].map(([key, from]) => [key, from + lateMillis + WAKE_UP_MILLIS])), stays);
    });
    pending.set(uidOf(pod), { since, timer });
  };
  return {
    has: (uid) => pending.has(uid),
    schedule(pod, stays) {
      const uid = uidOf(pod);
      const before = pending.get(uid)?.since;
      cancel(uid);
      start(pod, before, stays);
    },
    isDue: (uid, stays) => pending.has(uid) && endOf(pending.get(uid)?.since, stays) <= timers.now(),
    cancel,
  };
}
