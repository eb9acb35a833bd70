/**
 * The source of a Pod of this node: the API, or a file (static Pods). The agent writes the status of a Pod to the Pod's source, and
 * asks the source to release the object of a deleted Pod. Rules that treat static Pods differently check `isStatic`.
 */
import type { Pod, PodStatus } from '../../api/generated/types.ts';
import type { ResourceClient } from '../../client/client.ts';
import { isApiError } from '../../machinery/status.ts';
import { statusPatch } from './status-patch.ts';
import type { Outcome } from './worker/ports.ts';

export interface PodSource {
  /** Whether the Pods come from files. Such Pods start without the API, are critical, and tolerate every NoExecute taint. */
  readonly isStatic: boolean;
  writeStatus(pod: Pod, status: PodStatus): Promise<void>;
  /** Releases the object of a deleted Pod of which nothing is left on the node. The outcome has `removed` if the API lacks the object. */
  finalize(pod: Pod): Promise<Outcome>;
}

/**
 * Returns the source of the Pods in the API. NotFound and Conflict are success, since the Pod no longer exists: Conflict means that
 * another Pod, with another UID, has the name.
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
