/** Follows the objects that decide which objects belong to a node, by the informers that the components of the engine share. */
import type { PersistentVolume, Pod } from '../../api/generated/types.ts';
import { PERSISTENT_VOLUMES, PODS } from '../../api/resources.ts';
import type { SyncedRelations } from '../../apiserver/auth/authorization/node/node-authorizer.ts';
import { createNodeGraph } from '../../apiserver/auth/authorization/node/node-graph.ts';
import type { SharedInformers } from '../../client/shared-informers.ts';

/**
 * Followers of an informer are called in the order in which they began to follow. Therefore this function must be called before a node agent
 * follows its Pods: then the agent may read what a Pod refers to as soon as it knows the Pod.
 */
export function followNodes({
  informers,
  signal,
}: {
  informers: SharedInformers;
  signal: AbortSignal;
}): SyncedRelations {
  const { putPod, removePod, putVolume, removeVolume, relates } = createNodeGraph();
  const pods = informers.follow<Pod>(PODS, { signal }, { added: putPod, updated: putPod, deleted: removePod });
  const volumes = informers.follow<PersistentVolume>(
    PERSISTENT_VOLUMES,
    { signal },
    { added: putVolume, updated: putVolume, deleted: removeVolume },
  );
  return { relates, synced: Promise.all([pods.synced, volumes.synced]).then(() => undefined) };
}
