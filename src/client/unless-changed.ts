/**
 * Handles writes of control loops that fail because the loop's copy of the object was out of date. A failed write is not repeated, because
 * the change of the object makes the loop decide again.
 */
import type { Pod, PodStatus } from '../api/generated/types.ts';
import { uidOf } from '../machinery/meta.ts';
import { isApiError } from '../machinery/status.ts';
import type { DeleteOptions } from '../ports/backend.ts';
import type { ResourceClient } from './client.ts';

/**
 * Resolves to the result of the write; undefined if the object no longer exists (NotFound), or was replaced or changed (Conflict). Rejects
 * with any other error.
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
 * Merges `status`, unless undefined, into the status of the Pod, and then deletes the Pod. Both calls contain the UID, which protects a new
 * Pod of the same name. Resolves to false after NotFound or Conflict.
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
