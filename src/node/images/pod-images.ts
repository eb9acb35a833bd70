/** Source: "Images" of the v1.33 documentation; pkg/kubelet/kubelet_pods.go (getPullSecretsForPod). */

import type { PullProgress } from '../../api/core/v1/pod/status/pull-progress.ts';
import type { Pod, Secret } from '../../api/generated/types.ts';
import { SECRETS } from '../../api/resources.ts';
import type { Client } from '../../client/client.ts';
import { isApiError } from '../../machinery/status.ts';
import { repositoryOf } from '../../runtime/images/references.ts';
import type { KeptReferences } from '../pod/kept-references.ts';
import { credentialsFor } from './credentials.ts';
import type { ImagePuller, PulledImage } from './puller.ts';

export interface PodImageOptions {
  client: Client;
  puller: ImagePuller;
  /** Finds copies of pull secrets that were deleted from the API but that Pods with defer containers still need. */
  kept?: Pick<KeptReferences, 'find'>;
  warn(pod: Pod, reason: string, message: string): void;
}

/** Omits pull secrets that neither exist nor have a copy. Rejects if another secret cannot be read or parsed, or if the pull fails. */
export type PodImagePull = (
  pod: Pod,
  reference: string,
  progress: (progress: PullProgress) => void,
  signal: AbortSignal,
) => Promise<PulledImage>;

export function createPodImagePull({ client, puller, kept, warn }: PodImageOptions): PodImagePull {
  const secrets = client.resource<Secret>(SECRETS);

  /** A missing secret is only reported, because the image may be public. */
  async function pullSecrets(pod: Pod): Promise<Secret[]> {
    const named = (pod.spec?.imagePullSecrets ?? []).map(({ name = '' }) => name).filter((name) => name !== '');
    const names = [...new Set(named)];
    const found = await Promise.all(
      names.map((name) =>
        secrets.get(name, pod.metadata.namespace).catch(async (error: unknown) => {
          // A node is not allowed to read the Secrets of a Pod whose object has been deleted.
          const isRefused = isApiError(error, 'Forbidden');
          if (!isRefused && !isApiError(error, 'NotFound')) throw error;
          const copy = await kept?.find<Secret>(pod, 'secrets', name);
          if (copy === undefined && isRefused) throw error;
          return copy;
        }),
      ),
    );
    const missing = names.filter((_, index) => found[index] === undefined);
    if (missing.length > 0)
      warn(
        pod,
        'FailedToRetrieveImagePullSecret',
        `Unable to retrieve some image pull secrets (${missing.join(', ')}); attempting to pull the image may not succeed.`,
      );
    return found.filter((secret) => secret !== undefined);
  }

  return async (pod, reference, progress, signal) => {
    const credentials = credentialsFor(repositoryOf(reference), await pullSecrets(pod));
    return puller.pull(reference, credentials, progress, signal);
  };
}
