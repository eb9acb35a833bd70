import type { Node, PersistentVolume, PersistentVolumeClaim, StorageClass } from '../../api/generated/types.ts';
import type { ResourceClient } from '../../client/client.ts';
import type { EventRecorder } from '../../client/events.ts';
import type { Informer } from '../../client/informer.ts';
import type { KubeObject, ObjectMeta, OwnerReference } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import type { VolumeSearch } from '../../scheduling/volume-search.ts';
import type { GroupedKeys } from './grouped-keys.ts';
import type { VolumeFolders } from './local-path.ts';

export interface Storage {
  claims: Informer<PersistentVolumeClaim>;
  claimsByOwner: GroupedKeys<PersistentVolumeClaim>;
  volumes: Informer<PersistentVolume>;
  search: VolumeSearch;
  classes: Informer<StorageClass>;
  nodes: Informer<Node>;
  claimClient: ResourceClient<PersistentVolumeClaim>;
  volumeClient: ResourceClient<PersistentVolume>;
  folders: VolumeFolders;
  events: EventRecorder;
}

export const claimKey = (of: { namespace?: string; name?: string }): string => `${of.namespace ?? ''}/${of.name ?? ''}`;

export const controllersOf = ({ ownerReferences = [] }: ObjectMeta): OwnerReference[] =>
  ownerReferences.filter(({ controller }) => controller === true);

/** Reads the object from the API instead of the informer's cache. Resolves with undefined if the object does not exist. */
export async function readNow<T extends KubeObject>(
  client: ResourceClient<T>,
  name: string,
  namespace?: string,
): Promise<T | undefined> {
  try {
    return await client.get(name, namespace);
  } catch (error) {
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  }
}
