/** Writes the status of a Pod to the API. */
import type { Pod, PodStatus } from '../../api/generated/types.ts';
import type { ResourceClient } from '../../client/client.ts';
import { isApiError } from '../../machinery/status.ts';
import { statusPatch } from './status-patch.ts';

/** Ignores a Pod that was deleted or replaced by one with another UID. */
export const createStatusWrites =
  (pods: ResourceClient<Pod>) =>
  async (pod: Pod, status: PodStatus): Promise<void> => {
    const { name, namespace, uid } = pod.metadata;
    const patch = { metadata: { uid }, status: statusPatch(pod, status) };
    try {
      await pods.patch(name, namespace, 'application/strategic-merge-patch+json', patch, 'status');
    } catch (error) {
      if (!isApiError(error, 'NotFound') && !isApiError(error, 'Conflict')) throw error;
    }
  };
