/**
 * Writes of loops that act on a copy of an object which may be out of date: the object may have been deleted, changed or replaced meanwhile.
 * Such a write is not repeated, because the change of the object makes the loop decide again.
 */
import type { Pod, PodStatus } from '../api/generated/types.ts';
import { uidOf } from '../machinery/meta.ts';
import { isApiError } from '../machinery/status.ts';
import type { DeleteOptions } from '../ports/backend.ts';
import type { ResourceClient } from './client.ts';

/**
 * Resolves with the result of the write; undefined if the API has answered that the object no longer exists (NotFound), or that it is
 * another one or has changed (Conflict). Rejects with any other error.
 */
export async function unlessChanged<T>(write: Promise<T>): Promise<T | undefined> {
  try {
    return await write;
  } catch (error) {
    if (isApiError(error, 'NotFound') || isApiError(error, 'Conflict')) return undefined;
    throw error;
  }
}

const MERGE = 'application/strategic-merge-patch+json';

/**
 * Merges the status into that of the Pod; undefined writes none. Then deletes the Pod. The UID protects another Pod of the same name.
 * Resolves with whether the Pod was the expected one in both calls; if not, the caller has nothing left to do.
 */
export async function deleteWithStatus(
  pods: ResourceClient<Pod>,
  pod: Pod,
  status: PodStatus | undefined,
  options: Omit<DeleteOptions, 'preconditions'> = {},
): Promise<boolean> {
  const { name, namespace } = pod.metadata;
  const uid = uidOf(pod);
  const write = async (): Promise<true> => {
    if (status !== undefined) await pods.patch(name, namespace, MERGE, { metadata: { uid }, status }, 'status');
    await pods.delete(name, namespace, { ...options, preconditions: { uid } });
    return true;
  };
  return (await unlessChanged(write())) ?? false;
}
