/** The source of a Pod of this node: the API, or a file (static Pods). */
import type { Pod, PodStatus } from '../../api/generated/types.ts';
import type { ResourceClient } from '../../client/client.ts';
import { isApiError } from '../../machinery/status.ts';
import { statusPatch } from './status-patch.ts';
import type { Outcome } from './worker/ports.ts';

export interface PodSource {
  readonly isStatic: boolean;
  writeStatus(pod: Pod, status: PodStatus): Promise<void>;
  /** Releases the object of a deleted Pod. The outcome has `removed` if the API lacks the object. */
  finalize(pod: Pod): Promise<Outcome>;
}

/**
 * Returns the source of the Pods in the API. NotFound and Conflict are success, since the Pod no longer exists: Conflict means that another
 * Pod, with another UID, has the name.
 */
export function createApiSource(pods: ResourceClient<Pod>): PodSource {
  return {
    isStatic: false,
    async writeStatus(pod, status) {
      const { name, namespace, uid } = pod.metadata;
      const patch = { metadata: { uid }, status: statusPatch(pod, status) };
      try {
        await pods.patch(name, namespace, 'application/strategic-merge-patch+json', patch, 'status');
      } catch (error) {
        if (!isGone(error)) throw error;
      }
    },
    async finalize({ metadata: { name, namespace, uid } }) {
      try {
        await pods.delete(name, namespace, { gracePeriodSeconds: 0, preconditions: { uid } });
      } catch (error) {
        if (!isGone(error)) throw error;
        return { removed: true };
      }
      return {};
    },
  };
}

const isGone = (error: unknown): boolean => isApiError(error, 'NotFound') || isApiError(error, 'Conflict');
