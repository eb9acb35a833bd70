/**
 * Builds the volumes of the class `local-path`: each is a folder on the machine. The functions are pure. Source: the local-path
 * provisioner's StorageClass and its volumes of type local (behavior).
 */
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '../../api/generated/types.ts';
import { defined } from '../../machinery/drop-undefined.ts';

export const LOCAL_PATH_PROVISIONER = 'lifepod.io/local-path';
/** An annotation with the provisioner of the volume. Only the provisioner may delete the content. */
export const PROVISIONED_BY = 'pv.kubernetes.io/provisioned-by';
export const BOUND_BY_CONTROLLER = 'pv.kubernetes.io/bound-by-controller';

/** Folders for volumes on one node. */
export interface VolumeFolders {
  nodeName: string;
  path(name: string): string;
  /** Creates an empty folder that every user can write to. Leaves an existing folder unchanged. */
  create(name: string): Promise<void>;
  /**
   * Removes the folder with its content. A missing folder is success. Rejects if something is mounted in the folder, or if the folder or
   * something in it is mounted elsewhere.
   */
  remove(name: string): Promise<void>;
  removeUnused(name: string): Promise<void>;
}

export const localPathClass: StorageClass = {
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: {
    name: 'local-path',
    annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' },
  },
  provisioner: LOCAL_PATH_PROVISIONER,
  reclaimPolicy: 'Delete',
  volumeBindingMode: 'WaitForFirstConsumer',
};

export const volumeNameFor = ({ metadata }: PersistentVolumeClaim): string => `pvc-${metadata.uid}`;

export const claimReference = ({ metadata }: PersistentVolumeClaim) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  namespace: metadata.namespace ?? '',
  name: metadata.name,
  uid: metadata.uid ?? '',
  ...defined({ resourceVersion: metadata.resourceVersion }),
});

/** Returns the volume to create for the claim. Its folder has the name of the volume. */
export function localVolume(
  claim: PersistentVolumeClaim,
  storageClass: StorageClass,
  folders: Pick<VolumeFolders, 'nodeName' | 'path'>,
): PersistentVolume {
  const name = volumeNameFor(claim);
  const hostname = { key: 'kubernetes.io/hostname', operator: 'In', values: [folders.nodeName] };
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name, annotations: { [PROVISIONED_BY]: LOCAL_PATH_PROVISIONER } },
    spec: {
      capacity: { storage: claim.spec?.resources?.requests?.['storage'] ?? '0' },
      accessModes: [...(claim.spec?.accessModes ?? [])],
      volumeMode: 'Filesystem',
      persistentVolumeReclaimPolicy: storageClass.reclaimPolicy ?? 'Delete',
      storageClassName: storageClass.metadata.name,
      local: { path: folders.path(name) },
      nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [hostname] }] } },
      claimRef: claimReference(claim),
    },
  };
}
