/**
 * The objects of the API to which a Pod refers by name. All of them except ClusterTrustBundles are in the namespace of the Pod. References
 * in defer containers are included.
 * Source: VisitPodSecretNames and VisitPodConfigmapNames of pkg/api/v1/pod, HasAPIObjectReference of pkg/api/pod, and
 * k8s.io/dynamic-resource-allocation/resourceclaim of v1.33 (behavior).
 */
import type { Pod, PodResourceClaim, Volume } from '../../../generated/types.ts';
import { type AnyContainer, containersOf } from './containers.ts';

export interface PodReference {
  resource:
    | 'serviceaccounts'
    | 'secrets'
    | 'configmaps'
    | 'persistentvolumeclaims'
    | 'resourceclaims'
    | 'clustertrustbundles';
  /** Empty if the Pod names no object, as for a token of its ServiceAccount, or if the object has no name yet. */
  name: string;
}

const to = (resource: PodReference['resource'], name: string | undefined): PodReference => ({
  resource,
  name: name ?? '',
});

/** An object to which the Pod refers several times is yielded several times. */
export function* referencesOf(pod: Pod): Generator<PodReference> {
  const { spec } = pod;
  if (spec?.serviceAccountName) yield to('serviceaccounts', spec.serviceAccountName);
  for (const { name } of spec?.imagePullSecrets ?? []) yield to('secrets', name);
  for (const claim of spec?.resourceClaims ?? []) yield to('resourceclaims', resourceClaimName(pod, claim));
  for (const container of containersOf(pod)) yield* containerReferences(container);
  for (const volume of spec?.volumes ?? []) yield* volumeReferences(pod, volume);
}

/** Returns undefined while the claim of a template has not been created. */
function resourceClaimName({ status }: Pod, { name, resourceClaimName: given }: PodResourceClaim): string | undefined {
  return given ?? status?.resourceClaimStatuses?.find((created) => created.name === name)?.resourceClaimName;
}

function* containerReferences({ envFrom, env }: AnyContainer): Generator<PodReference> {
  for (const { configMapRef, secretRef } of envFrom ?? []) {
    if (configMapRef) yield to('configmaps', configMapRef.name);
    if (secretRef) yield to('secrets', secretRef.name);
  }
  for (const { valueFrom } of env ?? []) {
    if (valueFrom?.configMapKeyRef) yield to('configmaps', valueFrom.configMapKeyRef.name);
    if (valueFrom?.secretKeyRef) yield to('secrets', valueFrom.secretKeyRef.name);
  }
}

function* volumeReferences(pod: Pod, volume: Volume): Generator<PodReference> {
  const { configMap, secret, persistentVolumeClaim, ephemeral, projected } = volume;
  if (configMap) yield to('configmaps', configMap.name);
  if (secret) yield to('secrets', secret.secretName);
  for (const name of volumeSecrets(volume)) yield to('secrets', name);
  if (persistentVolumeClaim) yield to('persistentvolumeclaims', persistentVolumeClaim.claimName);
  else if (ephemeral) yield to('persistentvolumeclaims', `${pod.metadata.name}-${volume.name}`);
  for (const source of projected?.sources ?? []) {
    if (source.serviceAccountToken) yield to('serviceaccounts', '');
    if (source.configMap) yield to('configmaps', source.configMap.name);
    if (source.secret) yield to('secrets', source.secret.name);
    if (source.clusterTrustBundle) yield to('clustertrustbundles', source.clusterTrustBundle.name);
  }
}

function* volumeSecrets(volume: Volume): Generator<string> {
  const { azureFile, cephfs, cinder, flexVolume, rbd, scaleIO, iscsi, storageos, csi } = volume;
  if (azureFile?.secretName) yield azureFile.secretName;
  for (const source of [cephfs, cinder, flexVolume, rbd, scaleIO, iscsi, storageos])
    if (source?.secretRef?.name) yield source.secretRef.name;
  if (csi?.nodePublishSecretRef?.name) yield csi.nodePublishSecretRef.name;
}
