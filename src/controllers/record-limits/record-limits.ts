/**
 * Deletes Pod records that are too old, and the oldest ones if all records together are too large.
 *
 * Reads: podrecords, pods. Writes: podrecords (delete).
 *
 * The age of a record counts from its last step, once its Pod is gone. If the records are too large, parts of records of
 * gone Pods are deleted first, the oldest first; then the oldest parts of living Pods, except the newest part of each Pod,
 * to which its node still writes. This controller keeps only the size and the time of each part in memory.
 */

import { mirroredUid } from '../../api/core/v1/pod/mirror.ts';
import type { Pod, PodRecord } from '../../api/generated/types.ts';
import { POD_RECORDS } from '../../api/lifepod.io/v1/pod-record/index.ts';
import { PODS } from '../../api/resources.ts';
import { createInformer } from '../../client/informer.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import { type Millis, parseTime } from '../../machinery/time.ts';
import { onAbort } from '../../platform/on-abort.ts';
import type { Timer } from '../../platform/platform.ts';
import type { ControllerOptions } from '../controller.ts';

export interface RecordLimits {
  ageMillis: number;
  /** The size of all records together, as JSON. */
  bytes: number;
}

/** Records that expire within this time of each other are deleted in one sweep. */
const SWEEP_MILLIS = 60 * 1000;
/** Records that exceed the limit are reduced to this fraction of it, so that not every further write causes a deletion. */
const SHRINK_TO = 0.9;
const PAGE_SIZE = 500;

/** One part of a record: what this controller keeps of a PodRecord. */
interface Part extends KubeObject {
  podUid: string;
  lastAt: Millis;
  bytes: number;
}

export async function startRecordLimits(options: ControllerOptions & { limits: RecordLimits }): Promise<void> {
  const { client, timers, log, signal, limits } = options;
  const records = client.resource<PodRecord>(POD_RECORDS);
  const living = new Set<string>();
  let bytes = 0;
  let timer: { at: Millis; timer: Timer } | undefined;
  let sweeping = false;
  /** Another sweep was requested while one was running. */
  let again = false;
  let ready = false;

  const count = (change: number): void => {
    bytes += change;
    if (bytes > limits.bytes) arm(timers.now());
  };
  const parts = createInformer<PodRecord, Part>(
    records,
    { pageSize: PAGE_SIZE, log, timers, signal },
    {
      added: (part) => {
        count(part.bytes);
        if (!living.has(part.podUid)) arm(part.lastAt + limits.ageMillis);
      },
      updated: (part, old) => {
        count(part.bytes - old.bytes);
        if (!living.has(part.podUid)) arm(part.lastAt + limits.ageMillis);
      },
      deleted: (part) => count(-part.bytes),
    },
    partOf,
  );
  // The record of a static Pod has the UID of the static Pod, not of its mirror Pod.
  const uidOf = (pod: Pod): string => mirroredUid(pod) ?? pod.metadata.uid ?? '';
  const pods = createInformer<Pod>(
    client.resource<Pod>(PODS),
    { log, timers, signal },
    {
      added: (pod) => void living.add(uidOf(pod)),
      updated: (pod) => void living.add(uidOf(pod)),
      deleted: (pod) => {
        living.delete(uidOf(pod));
        arm(timers.now() + limits.ageMillis);
      },
    },
  );

  function arm(at: Millis): void {
    if (signal.aborted || (timer !== undefined && timer.at <= at)) return;
    timer?.timer.cancel();
    timer = { at, timer: timers.at(at, () => void sweep()) };
  }

  async function sweep(): Promise<void> {
    timer?.timer.cancel();
    timer = undefined;
    again ||= sweeping;
    if (!ready || sweeping) return;
    sweeping = true;
    try {
      const now = timers.now();
      const { expired, nextAt } = byAge(parts.list(), living, limits.ageMillis, now);
      const failed = !(await removeAll(expired)) || (bytes > limits.bytes && !(await removeAll(tooMany())));
      if (failed || nextAt !== undefined) arm(Math.max(failed ? now : (nextAt ?? now), now + SWEEP_MILLIS));
    } finally {
      sweeping = false;
    }
    if (again) arm(timers.now());
    again = false;
  }

  function tooMany(): Part[] {
    let excess = bytes - limits.bytes * SHRINK_TO;
    return bySize(parts.list(), living).filter((part) => {
      const isExcess = excess > 0;
      if (isExcess) excess -= part.bytes;
      return isExcess;
    });
  }

  /** Returns false if a deletion failed and must be retried. */
  async function removeAll(all: readonly Part[]): Promise<boolean> {
    let done = true;
    for (const { metadata } of all) {
      const { name, namespace, uid } = metadata;
      if (signal.aborted) return true;
      try {
        await records.delete(name, namespace, { preconditions: { uid } });
      } catch (error) {
        if (isApiError(error, 'NotFound') || isApiError(error, 'Conflict')) continue;
        log.warn('record-limits: cannot delete a record', { name, namespace, error: (error as Error).message });
        done = false;
      }
    }
    return done;
  }

  onAbort(signal, () => timer?.timer.cancel());
  await Promise.all([parts.synced, pods.synced]);
  ready = true;
  await sweep();
}

function partOf({ apiVersion, kind, metadata, ...record }: PodRecord): Part {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = metadata;
  const times = [creationTimestamp, record.transitions.at(-1)?.at].map((time) => parseTime(time) ?? 0);
  return {
    apiVersion,
    kind,
    metadata: { name, namespace, uid, resourceVersion } as Part['metadata'],
    podUid: record.podUID,
    lastAt: Math.max(...times),
    bytes: JSON.stringify({ apiVersion, kind, metadata, ...record }).length,
  };
}

/** The parts of expired records, and the time at which the next record of a gone Pod expires, if there is one. */
export function byAge(
  parts: readonly Part[],
  living: ReadonlySet<string>,
  ageMillis: number,
  now: Millis,
): { expired: Part[]; nextAt: Millis | undefined } {
  const lastOf = new Map<string, Millis>();
  for (const { podUid, lastAt } of parts) lastOf.set(podUid, Math.max(lastAt, lastOf.get(podUid) ?? 0));
  const expiryOf = ({ podUid }: Part): Millis =>
    living.has(podUid) ? Number.POSITIVE_INFINITY : (lastOf.get(podUid) ?? 0) + ageMillis;
  let next = Number.POSITIVE_INFINITY;
  const expired = parts.filter((part) => {
    const at = expiryOf(part);
    if (at > now) next = Math.min(next, at);
    return at <= now;
  });
  return { expired, nextAt: Number.isFinite(next) ? next : undefined };
}

/** The parts that may be deleted to reduce the size, in the order of deletion. */
export function bySize(parts: readonly Part[], living: ReadonlySet<string>): Part[] {
  const newest = new Map<string, Part>();
  for (const part of parts) {
    const known = newest.get(part.podUid);
    if (known === undefined || numberOf(part) > numberOf(known)) newest.set(part.podUid, part);
  }
  const rank = (part: Part): number => (living.has(part.podUid) ? 1 : 0);
  return parts
    .filter((part) => rank(part) === 0 || newest.get(part.podUid) !== part)
    .sort((a, b) => rank(a) - rank(b) || a.lastAt - b.lastAt || numberOf(a) - numberOf(b));
}

const numberOf = ({ metadata }: Part): number => Number(metadata.name.split('.').at(-1));
