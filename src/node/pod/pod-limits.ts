/** Writes the limits of the Pods' control groups, once per sandbox. A new engine writes them again. */
import type { Pod } from '../../api/generated/types.ts';
import { uidOf } from '../../machinery/meta.ts';
import type { PodCgroups } from '../resources/pod-cgroups.ts';
import { ActionError, messageOf } from './action-error.ts';

export interface PodLimits {
  /** Writes the limits. Rejects with an ActionError with the reason CreateContainerError. */
  write(pod: Pod): Promise<void>;
  /** Like write(), unless the limits were written since the last call of forget(). A failed write does not count. */
  ensure(pod: Pod): Promise<void>;
  /** Whether the limits were written, or are being written, since the last call of forget(). */
  isWritten(podUid: string): boolean;
  /** Forgets that the limits were written. Called when the Pod's sandbox was stopped, or when nothing of the Pod is left. */
  forget(podUid: string): void;
}

/** `cgroups`: undefined if the runtime chooses the control groups; then nothing is written. */
export function createPodLimits(cgroups: Pick<PodCgroups, 'create'> | undefined): PodLimits {
  const writes = new Map<string, Promise<void>>();
  const write = (pod: Pod): Promise<void> => {
    const uid = uidOf(pod);
    const writing = Promise.resolve(cgroups?.create(pod)).catch((error: unknown) => {
      writes.delete(uid);
      const summary = `failed to ensure that the pod: ${uid} cgroups exist and are correctly applied`;
      throw new ActionError('CreateContainerError', `${summary}: ${messageOf(error)}`);
    });
    writes.set(uid, writing);
    return writing;
  };
  return {
    write,
    ensure: (pod) => writes.get(uidOf(pod)) ?? write(pod),
    isWritten: (podUid) => writes.has(podUid),
    forget: (podUid) => void writes.delete(podUid),
  };
}
