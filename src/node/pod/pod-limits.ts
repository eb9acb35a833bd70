/**
 * Writes the limits of the Pods' control groups when a sandbox is created, and before a container starts if this engine has not
 * written them for the sandbox yet.
 */
import type { Pod } from '../../api/generated/types.ts';
import { uidOf } from '../../machinery/meta.ts';
import type { PodCgroups } from '../resources/pod-cgroups.ts';
import { ActionError, messageOf } from './action-error.ts';

export interface PodLimits {
  /** Creates or updates the Pod's control group with its limits. On failure, rejects with an ActionError CreateContainerError. */
  write(pod: Pod): Promise<void>;
  /** Like write(), but does nothing if the limits were written since the last call of forget(), and joins a write in progress. */
  ensure(pod: Pod): Promise<void>;
  /** Whether the limits were written, or are being written, since the last call of forget(). */
  isWritten(podUid: string): boolean;
  /** Forgets that the limits were written. Called after the Pod's sandbox was stopped, and before all files of the Pod are removed. */
  forget(podUid: string): void;
}

/**
 * Creates the functions that write the limits through `cgroups`. If `cgroups` is undefined, the runtime chooses the control groups, and no
 * limits are written.
 */
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
