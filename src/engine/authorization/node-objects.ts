/** Follows, with the shared informers of the engine, the Pods and PersistentVolumes that decide which objects a node may read. */
import type { PersistentVolume, Pod } from '../../api/generated/types.ts';
import { PERSISTENT_VOLUMES, PODS } from '../../api/resources.ts';
import type { SyncedRelations } from '../../apiserver/auth/authorization/node/node-authorizer.ts';
import { createNodeGraph } from '../../apiserver/auth/authorization/node/node-graph.ts';
import type { SharedInformers } from '../../client/shared-informers.ts';

/**
 * Must be called before a node agent follows its Pods. An informer calls its followers in the order in which they began to follow, so the
 * agent may read the objects to which a Pod refers as soon as the agent knows the Pod.
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
