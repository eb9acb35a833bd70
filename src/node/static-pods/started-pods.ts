/**
 * Manages the static Pods that have started and not ended.
 * Invariants:
 * - A new Pod, and a new status of a Pod, is recorded on the disk (see status-files.ts) before the worker receives the Pod.
 * - A Pod is terminated even if its record cannot be written.
 */
import type { Pod, PodStatus } from '../../api/generated/types.ts';
import { uidOf } from '../../machinery/meta.ts';
import type { Log } from '../../platform/platform.ts';
import { fullNameOf, type Mirrors } from './mirrors.ts';
import type { PodRecord, Records } from './status-files.ts';

export interface Slots {
  ofUid(uid: string | undefined): PodRecord | undefined;
  /** Does nothing if the status is unchanged or no Pod has this UID. Throws if the record cannot be written. */
  putStatus(uid: string, status: PodStatus): void;
  /** Records the Pod and passes it to its worker. If the record cannot be written, logs the error and returns false instead. */
  tryPut(record: PodRecord): boolean;
  /** Like tryPut(), but passes the Pod to its worker even if the record cannot be written. */
  putOrEnter(record: PodRecord): void;
  /** Passes the recorded Pods of an earlier engine to their workers. */
  restore(): void;
  remove(record: PodRecord): void;
}

export interface SlotsOptions {
  records: Records;
  mirrors: Pick<Mirrors, 'changed'>;
  log: Log;
  signal: AbortSignal;
  apply(pod: Pod): void;
}

/** The keys of `slots` are full names. */
export function createSlots(slots: Map<string, PodRecord>, options: SlotsOptions): Slots {
  const { records, mirrors, log, signal, apply } = options;
  const enter = (record: PodRecord): void => {
    const fullName = fullNameOf(record.pod);
    slots.set(fullName, record);
    mirrors.changed(fullName);
    // Apply the change later, because the worker may be in the middle of a decision. Changes from the API do not arrive during a decision
    // either.
    queueMicrotask(() => {
      const pod = slots.get(fullName)?.pod;
      if (pod !== undefined && !signal.aborted) apply(pod);
    });
  };
  const put = (record: PodRecord): void => {
    records.write(record);
    enter(record);
  };
  const tryPut = (record: PodRecord): boolean => {
    try {
      put(record);
      return true;
    } catch (error) {
      const pod = fullNameOf(record.pod);
      log.warn('the record of a static Pod cannot be written', { pod, error: (error as Error).message });
      return false;
    }
  };
  const putOrEnter = (record: PodRecord): void => {
    if (!tryPut(record)) enter(record);
  };
  const ofUid = (uid: string | undefined): PodRecord | undefined =>
    [...slots.values()].find(({ pod }) => pod.metadata.uid === uid);
  return {
    ofUid,
    putStatus(uid, status) {
      const slot = ofUid(uid);
      if (slot !== undefined && JSON.stringify(slot.pod.status) !== JSON.stringify(status))
        put({ ...slot, pod: { ...slot.pod, status } });
    },
    tryPut,
    putOrEnter,
    restore: () => records.load().forEach(putOrEnter),
    remove({ pod }) {
      const uid = uidOf(pod);
      try {
        records.remove(uid);
      } catch (error) {
        // The next agent reads the record, finds no container of the Pod, and removes the record.
        log.warn('the record of a static Pod cannot be removed', { podUid: uid, error: (error as Error).message });
      }
      slots.delete(fullNameOf(pod));
      mirrors.changed(fullNameOf(pod));
    },
  };
}
