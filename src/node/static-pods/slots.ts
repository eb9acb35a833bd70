/**
 * The static Pods that have started and not ended, at most one of each full name (namespace/name).
 * Invariants:
 *  1. A Pod is recorded on the disk before its worker receives it.
 *  2. A Pod that ends does so even where the disk takes no record.
 */
import type { Pod } from '../../api/generated/types.ts';
import type { Log } from '../../platform/platform.ts';
import { fullNameOf, type Mirrors } from './mirrors.ts';
import type { PodRecord, Records } from './records.ts';

export interface Slots {
  ofUid(uid: string | undefined): PodRecord | undefined;
  /** Records the Pod, then gives it to its worker. Throws where the disk takes no record. */
  put(record: PodRecord): void;
  /** As put(), but logs a failure. Returns whether the Pod is recorded. */
  tryPut(record: PodRecord): boolean;
  /** As tryPut(), but gives the Pod to its worker also without a record: the next status of the Pod is recorded with it. */
  putOrEnter(record: PodRecord): void;
  /** Gives the recorded Pods of an earlier engine to their workers. */
  restore(): void;
  /** Removes the slot and the record of a Pod of which nothing is left. */
  remove(record: PodRecord): void;
}

export interface SlotsOptions {
  records: Records;
  mirrors: Pick<Mirrors, 'changed'>;
  log: Log;
  signal: AbortSignal;
  /** Gives the Pod to its worker. */
  apply(pod: Pod): void;
}

/** `slots`: by full name; the result fills and empties it. */
export function createSlots(slots: Map<string, PodRecord>, options: SlotsOptions): Slots {
  const { records, mirrors, log, signal, apply } = options;
  const enter = (record: PodRecord): void => {
    const fullName = fullNameOf(record.pod);
    slots.set(fullName, record);
    mirrors.changed(fullName);
    // Like an event of the API, the change must not reach the worker in the middle of a decision.
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
  return {
    ofUid: (uid) => [...slots.values()].find(({ pod }) => pod.metadata.uid === uid),
    put,
    tryPut,
    putOrEnter,
    restore: () => records.load().forEach(putOrEnter),
    remove({ pod }) {
      const { uid = '' } = pod.metadata;
      try {
        records.remove(uid);
      } catch (error) {
        // The next agent finds the record, and that nothing of the Pod is left.
        log.warn('the record of a static Pod cannot be removed', { podUid: uid, error: (error as Error).message });
      }
      slots.delete(fullNameOf(pod));
      mirrors.changed(fullNameOf(pod));
    },
  };
}
