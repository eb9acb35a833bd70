/**
 * Deletes Pod records that are too old, and the oldest parts of records if all records together are too large. Each part of a record is a
 * PodRecord object.
 *
 * Reads: podrecords, pods. Writes: podrecords (delete).
 *
 * Only the records of deleted Pods expire. Their age counts from their last step, or from the creation of a part if that is later. If the
 * records are too large, parts of deleted Pods are deleted first, then parts of existing Pods, each the oldest first. The newest part of an
 * existing Pod is kept, because the node still writes to it. The controller keeps only the size, time and identity of each part in memory,
 * not its steps.
 */

import { mirroredUid } from '../../api/core/v1/pod/mirror.ts';
import type { Pod, PodRecord } from '../../api/generated/types.ts';
import { POD_RECORDS } from '../../api/lifepod.io/v1/pod-record/index.ts';
import { PODS } from '../../api/resources.ts';
import type { ResourceClient } from '../../client/client.ts';
import { createInformer } from '../../client/informer.ts';
import { uidOf } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import { type Millis, parseTime } from '../../machinery/time.ts';
import type { Log } from '../../platform/platform.ts';
import type { ControllerOptions } from '../controller.ts';
import { byAge, excessParts, type Part } from './parts-to-delete.ts';
import { createSweeper } from './sweeper.ts';

export interface RecordLimits {
  /** The maximum age of the record of a deleted Pod. */
  ageMillis: number;
  /** The maximum size of all records together, measured as the length of their JSON. */
  bytes: number;
}

/** The minimum time from a sweep to the next one for expired records, so that records that expire soon after each other share a sweep. */
const SWEEP_MILLIS = 60 * 1000;
/** Records that exceed the size limit are reduced to this fraction of the limit, so that not every write causes a deletion. */
const SHRINK_TO = 0.9;
const PAGE_SIZE = 500;

export async function startRecordLimits(options: ControllerOptions & { limits: RecordLimits }): Promise<void> {
  const { client, informers, timers, log, signal, limits } = options;
  const records = client.resource<PodRecord>(POD_RECORDS);
  const sweeper = createSweeper(options, enforceLimits);
  /** The UIDs of existing Pods, as their records contain them. */
  const living = new Set<string>();
  let bytes = 0;

  const count = (change: number): void => {
    bytes += change;
    if (bytes > limits.bytes) sweeper.request(timers.now());
  };
  const sweepWhenExpired = (part: Part): void => {
    if (!living.has(part.podUid)) sweeper.request(part.lastAt + limits.ageMillis);
  };
  // This informer is not shared: nothing else follows the records, and with their steps, they would take too much memory.
  const parts = createInformer<PodRecord, Part>(
    records,
    { pageSize: PAGE_SIZE, log, timers, signal },
    {
      added: (part) => {
        count(part.bytes);
        sweepWhenExpired(part);
      },
      updated: (part, old) => {
        count(part.bytes - old.bytes);
        sweepWhenExpired(part);
      },
      deleted: (part) => count(-part.bytes),
    },
    partOf,
  );
  const pods = informers.follow<Pod>(
    PODS,
    { signal },
    {
      added: (pod) => void living.add(recordedUid(pod)),
      updated: (pod) => void living.add(recordedUid(pod)),
      deleted: (pod) => {
        living.delete(recordedUid(pod));
        sweeper.request(timers.now() + limits.ageMillis);
      },
    },
  );

  const removeAll = (all: readonly Part[]): Promise<boolean> => deleteParts(records, all, log, signal);
  const excess = (): Part[] => excessParts(parts.list(), living, bytes - limits.bytes * SHRINK_TO);

  /** Deletes expired records and the excess parts. Resolves with the time of the next sweep; undefined if none is needed. */
  async function enforceLimits(): Promise<Millis | undefined> {
    const now = timers.now();
    const { expired, nextAt } = byAge(parts.list(), living, limits.ageMillis, now);
    const isDone = (await removeAll(expired)) && (bytes <= limits.bytes || (await removeAll(excess())));
    if (isDone && nextAt === undefined) return undefined;
    return Math.max(isDone ? (nextAt ?? now) : now, now + SWEEP_MILLIS);
  }

  await Promise.all([parts.synced, pods.synced]);
  await sweeper.start();
}

/** The record of a static Pod has the UID of the static Pod, not of its mirror Pod. */
const recordedUid = (pod: Pod): string => mirroredUid(pod) ?? uidOf(pod);

async function deleteParts(
  records: ResourceClient<PodRecord>,
  parts: readonly Part[],
  log: Log,
  signal: AbortSignal,
): Promise<boolean> {
  let isDone = true;
  for (const { metadata } of parts) {
    const { name, namespace, uid } = metadata;
    if (signal.aborted) return true;
    try {
      await records.delete(name, namespace, { preconditions: { uid } });
    } catch (error) {
      if (isApiError(error, 'NotFound') || isApiError(error, 'Conflict')) continue;
      log.warn('record-limits: cannot delete a record', { name, namespace, error: (error as Error).message });
      isDone = false;
    }
  }
  return isDone;
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
