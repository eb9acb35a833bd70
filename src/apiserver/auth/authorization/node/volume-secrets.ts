/**
 * The Secrets that a node needs for a PersistentVolume.
 * Source: VisitPVSecretNames of pkg/api/v1/persistentvolume of v1.33 (behavior), without the Secrets that only other components read.
 */
import type { PersistentVolume } from '../../../../api/generated/types.ts';

export interface SecretName {
  namespace: string;
  name: string;
}

/** A Secret reference without a namespace means the namespace of the claim. */
export function* volumeSecrets({ spec }: PersistentVolume): Generator<SecretName> {
  const claimNamespace = spec?.claimRef?.namespace ?? '';
  const { azureFile, cephfs, cinder, flexVolume, rbd, scaleIO, iscsi, storageos, csi } = spec ?? {};
  if (azureFile?.secretName)
    yield { namespace: azureFile.secretNamespace || claimNamespace, name: azureFile.secretName };
  const own = [cephfs, cinder, flexVolume, rbd, scaleIO, iscsi, storageos].map((source) => source?.secretRef);
  const ofDriver = [csi?.nodeStageSecretRef, csi?.nodePublishSecretRef, csi?.nodeExpandSecretRef];
  for (const reference of [...own, ...ofDriver])
    if (reference?.name) yield { namespace: reference.namespace || claimNamespace, name: reference.name };
}
