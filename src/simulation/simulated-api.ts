/** An API with one object: a Pod that clients edit, delete and remove by force, and whose status the agent writes. */
import type { Pod, PodCondition, PodStatus } from '../api/generated/types.ts';
import { formatTime, parseTime } from '../machinery/time.ts';
import type { Timers } from '../platform/platform.ts';
import type { Deletion } from './life.ts';

export interface SimulatedApi {
  readonly pod: Pod;
  readonly removed: boolean;
  change(pod: Pod): void;
  writeStatus(status: PodStatus): void;
  deletePod(deletion: Omit<Deletion, 'at'>): void;
  /** Stores the request to give up a defer container. Has no effect while the status has no termination, or if the object was removed. */
  skip(entry: string): void;
  remove(): void;
}

/** `changed` is called after each change of the object. */
export function createSimulatedApi(first: Pod, timers: Timers, changed: () => void): SimulatedApi {
  let pod = structuredClone(first);
  let removed = false;
  const change = (next: Pod): void => {
    pod = next;
    changed();
  };
  return {
    get pod() {
      return pod;
    },
    get removed() {
      return removed;
    },
    change,
    // JSON is how the status reaches the real API, and takes less time than structuredClone().
    writeStatus: (status) => change({ ...pod, status: withSkips(JSON.parse(JSON.stringify(status)), pod.status) }),
    deletePod({ graceSeconds, reason }) {
      if (removed) return;
      if (reason !== undefined) change(withDeletionReason(pod, reason, timers.now()));
      const metadata = deletionOf(pod, graceSeconds, timers.now());
      if (metadata !== undefined) change({ ...pod, metadata: { ...pod.metadata, ...metadata } });
    },
    skip(entry) {
      const { termination } = pod.status ?? {};
      if (removed || termination === undefined) return;
      change({
        ...pod,
        status: { ...pod.status, termination: { ...termination, skip: union(termination.skip, [entry]) } },
      });
    },
    remove() {
      removed = true;
      changed();
    },
  };
}

const union = (one: readonly string[] = [], other: readonly string[] = []): string[] => [
  ...new Set([...one, ...other]),
];

/** Adds the stored skips to the status, because the agent may have computed the status before the skips were stored. */
function withSkips(status: PodStatus, before: PodStatus | undefined): PodStatus {
  const skip = union(before?.termination?.skip, status.termination?.skip);
  if (status.termination === undefined || skip.length === 0) return status;
  return { ...status, termination: { ...status.termination, skip } };
}

function withDeletionReason(pod: Pod, reason: string, now: number): Pod {
  const lastTransitionTime = formatTime(now);
  const condition: PodCondition = { type: 'DeletionReason', status: 'True', reason, lastTransitionTime };
  const others = (pod.status?.conditions ?? []).filter(({ type }) => type !== condition.type);
  return { ...pod, status: { ...pod.status, conditions: [...others, condition] } };
}

/**
 * Returns the metadata that a delete sets; undefined if the delete changes nothing. As in src/apiserver/registry/delete.ts, a further
 * delete can only shorten the grace period, and leaves at most 1 s if the shortened grace period has already passed.
 */
function deletionOf({ metadata }: Pod, graceSeconds: number, now: number): Partial<Pod['metadata']> | undefined {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = metadata;
  const until = (end: number, seconds: number): Partial<Pod['metadata']> => ({
    deletionTimestamp: formatTime(end),
    deletionGracePeriodSeconds: seconds,
  });
  if (deletionTimestamp === undefined) return until(now + graceSeconds * 1000, graceSeconds);
  if (graceSeconds >= deletionGracePeriodSeconds) return undefined;
  const end = (parseTime(deletionTimestamp) ?? now) - deletionGracePeriodSeconds * 1000 + graceSeconds * 1000;
  return end < now ? until(now, Math.min(graceSeconds, 1)) : until(end, graceSeconds);
}
