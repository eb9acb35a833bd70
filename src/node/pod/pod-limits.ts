import type { Pod } from '../../api/generated/types.ts';
import { uidOf } from '../../machinery/meta.ts';
import type { PodCgroups } from '../resources/pod-cgroups.ts';
import { ActionError, messageOf } from './action-error.ts';

export interface PodLimits {
  /** On failure, rejects with an ActionError CreateContainerError. */
  write(pod: Pod): Promise<void>;
  /** Like write(), but does nothing if the limits were written since the last call of forget(), and joins a write in progress. */
  ensure(pod: Pod): Promise<void>;
  isWritten(podUid: string): boolean;
  forget(podUid: string): void;
}

/** `cgroups`: undefined if the runtime chooses the control groups. No limits are written then. */
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
