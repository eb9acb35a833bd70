/**
 * Matches PersistentVolumes with PersistentVolumeClaims, and determines on which nodes a Pod's claims allow the Pod to run.
 * Source: pkg/controller/volume/persistentvolume and the scheduler plugins VolumeBinding and VolumeRestrictions of v1.33 (behavior and
 * wording).
 */
import type {
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  StorageClass,
  Volume,
} from '../api/generated/types.ts';
import { compareQuantities, quantityOrZero } from '../machinery/quantity.ts';
import type { PodsOnNode } from './node-pods.ts';
import { type FindVolume, isReachable, type VolumeSearch } from './volume-search.ts';

/** An annotation of a claim that waits for its first consumer: the node that the scheduler has chosen for the consumer. */
export const SELECTED_NODE = 'volume.kubernetes.io/selected-node';
/** An annotation of a claim whose binding is complete. */
export const BIND_COMPLETED = 'pv.kubernetes.io/bind-completed';
/** The provisioner of StorageClasses whose volumes are created manually. */
export const NO_PROVISIONER = 'kubernetes.io/no-provisioner';

export interface VolumeFacts {
  claim(namespace: string, name: string): PersistentVolumeClaim | undefined;
  volume(name: string): PersistentVolume | undefined;
  search(): VolumeSearch;
  storageClass(name: string): StorageClass | undefined;
}

/**
 * Whether the binding is complete. The phase is not checked, because the phase Bound is written later than the annotation BIND_COMPLETED.
 */
export const isBound = ({ metadata, spec }: PersistentVolumeClaim): boolean =>
  (spec?.volumeName ?? '') !== '' && metadata.annotations?.[BIND_COMPLETED] !== undefined;

export function claimNameOf(pod: Pod, volume: Volume): string | undefined {
  if (volume.persistentVolumeClaim !== undefined) return volume.persistentVolumeClaim.claimName;
  return volume.ephemeral === undefined ? undefined : `${pod.metadata.name}-${volume.name}`;
}

export const claimNamesOf = (pod: Pod): string[] =>
  (pod.spec?.volumes ?? []).map((volume) => claimNameOf(pod, volume)).filter((name) => name !== undefined);

/**
 * Describes the first mismatch; undefined if there is none. Volumes that are being deleted never match. Does not check the claim's label
 * selector, nor the volume's claimRef and node affinity.
 */
export function volumeMismatch(
  { metadata, spec = {} }: PersistentVolume,
  { spec: wanted = {} }: PersistentVolumeClaim,
): string | undefined {
  const capacity = quantityOrZero(spec.capacity?.['storage']);
  const request = quantityOrZero(wanted.resources?.requests?.['storage']);
  if (metadata.deletionTimestamp !== undefined)
    return `the volume is marked for deletion ${JSON.stringify(metadata.name)}`;
  if (compareQuantities(capacity, request) < 0) return 'requested PV is too small';
  if ((spec.storageClassName ?? '') !== (wanted.storageClassName ?? '')) return 'storageClassName does not match';
  if ((spec.volumeMode ?? 'Filesystem') !== (wanted.volumeMode ?? 'Filesystem')) return 'incompatible volumeMode';
  const modes = new Set(spec.accessModes);
  const hasAllModes = (wanted.accessModes ?? []).every((mode) => modes.has(mode));
  return hasAllModes ? undefined : 'incompatible accessMode';
}

const waitsForConsumer = ({ spec }: PersistentVolumeClaim, facts: VolumeFacts): boolean =>
  facts.storageClass(spec?.storageClassName ?? '')?.volumeBindingMode === 'WaitForFirstConsumer';

/** Returns why the Pod's claims prevent the Pod from running on any node now; undefined if they do not. */
export function claimProblem(pod: Pod, facts: VolumeFacts): string | undefined {
  let unbound = false;
  for (const volume of pod.spec?.volumes ?? []) {
    const name = claimNameOf(pod, volume);
    if (name === undefined) continue;
    const quoted = JSON.stringify(name);
    const claim = facts.claim(pod.metadata.namespace ?? '', name);
    if (claim === undefined) {
      return volume.ephemeral === undefined
        ? `persistentvolumeclaim ${quoted} not found`
        : `waiting for ephemeral volume controller to create the persistentvolumeclaim ${quoted}`;
    }
    if (claim.status?.phase === 'Lost') {
      const lost = JSON.stringify(claim.spec?.volumeName ?? '');
      return `persistentvolumeclaim ${quoted} bound to non-existent persistentvolume ${lost}`;
    }
    if (claim.metadata.deletionTimestamp !== undefined) return `persistentvolumeclaim ${quoted} is being deleted`;
    if (volume.ephemeral !== undefined && !isOwnedBy(claim, pod)) {
      return `PVC ${claim.metadata.namespace}/${name} was not created for pod ${claim.metadata.namespace}/${pod.metadata.name} (pod is not owner)`;
    }
    unbound ||= !isBound(claim) && !waitsForConsumer(claim, facts);
  }
  return unbound ? 'pod has unbound immediate PersistentVolumeClaims' : undefined;
}

export const isOwnedBy = ({ metadata }: PersistentVolumeClaim, pod: Pod): boolean =>
  (metadata.ownerReferences ?? []).some(({ uid, controller }) => controller === true && uid === pod.metadata.uid);

/** Returns the names of claims with the access mode ReadWriteOncePod, which no other Pod may use at the same time. */
export const exclusiveClaims = (pod: Pod, facts: VolumeFacts): Set<string> =>
  new Set(
    claimNamesOf(pod).filter((name) =>
      facts.claim(pod.metadata.namespace ?? '', name)?.spec?.accessModes?.includes('ReadWriteOncePod'),
    ),
  );

/** Returns why the Pod's claims exclude the node; an empty list if they do not. `onNode`: the other Pods of the node. */
export function volumeReasons(
  pod: Pod,
  node: Node,
  onNode: Pick<PodsOnNode, 'usesClaim'>,
  facts: VolumeFacts,
): string[] {
  const namespace = pod.metadata.namespace ?? '';
  const exclusive = exclusiveClaims(pod, facts);
  let find: FindVolume | undefined;
  const reasons = new Set<string>();
  for (const name of new Set(claimNamesOf(pod))) {
    const claim = facts.claim(namespace, name);
    if (claim === undefined) continue;
    if (exclusive.has(name) && onNode.usesClaim(namespace, name)) {
      reasons.add('node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode');
    }
    if (isBound(claim)) {
      const volume = facts.volume(claim.spec?.volumeName ?? '');
      if (volume === undefined) {
        reasons.add('node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)');
      } else if (!isReachable(volume, node)) reasons.add('node(s) had volume node affinity conflict');
    } else if (facts.storageClass(claim.spec?.storageClassName ?? '')?.provisioner === NO_PROVISIONER) {
      find ??= facts.search().on(node);
      if (find(claim) === undefined) reasons.add("node(s) didn't find available persistent volumes to bind");
    }
  }
  return [...reasons];
}

/** Returns the Pod's existing claims that are not fully bound. A fully bound claim has the phase Bound, which is written last. */
export const unboundClaims = (pod: Pod, facts: VolumeFacts): PersistentVolumeClaim[] =>
  [...new Set(claimNamesOf(pod))]
    .map((name) => facts.claim(pod.metadata.namespace ?? '', name))
    .filter((claim) => claim !== undefined)
    .filter((claim) => !isBound(claim) || claim.status?.phase !== 'Bound');
