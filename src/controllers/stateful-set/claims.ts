/**
 * Builds the claims of a StatefulSet's Pods, and determines the owner references with which the garbage collector implements the retention
 * policy. The functions are pure.
 * Source: getPersistentVolumeClaims, isClaimOwnerUpToDate and updateClaimOwnerRefForSetAndPod of
 * pkg/controller/statefulset/stateful_set_utils.go of v1.33 (behavior).
 */
import type { PersistentVolumeClaim, Pod, StatefulSet } from '../../api/generated/types.ts';
import { type KubeObject, type OwnerReference, uidOf } from '../../machinery/meta.ts';

export const claimTemplatesOf = ({ spec }: StatefulSet): readonly PersistentVolumeClaim[] =>
  spec?.volumeClaimTemplates ?? [];

/** `template`: the name of the claim template. */
export const claimNameOf = ({ metadata }: StatefulSet, template: string, ordinal: number): string =>
  `${template}-${metadata.name}-${ordinal}`;

export const claimsOf = (set: StatefulSet, ordinal: number): PersistentVolumeClaim[] =>
  claimTemplatesOf(set).map(({ metadata, spec }) => ({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name: claimNameOf(set, metadata.name, ordinal),
      namespace: set.metadata.namespace ?? 'default',
      labels: { ...metadata.labels, ...set.spec?.selector.matchLabels },
      ...(metadata.annotations === undefined ? {} : { annotations: { ...metadata.annotations } }),
    },
    ...(spec === undefined ? {} : { spec: structuredClone(spec) }),
  }));

const policyOf = ({ spec }: StatefulSet): { onScale: boolean; onDelete: boolean } => ({
  onScale: spec?.persistentVolumeClaimRetentionPolicy?.whenScaled === 'Delete',
  onDelete: spec?.persistentVolumeClaimRetentionPolicy?.whenDeleted === 'Delete',
});

const SET = { apiVersion: 'apps/v1', kind: 'StatefulSet' };
const POD = { apiVersion: 'v1', kind: 'Pod' };

interface Owner {
  type: typeof SET;
  object: KubeObject;
}

const isOfType = (reference: OwnerReference, { type }: Owner): boolean =>
  reference.apiVersion === type.apiVersion && reference.kind === type.kind;

const refersTo = (reference: OwnerReference, owner: Owner): boolean =>
  isOfType(reference, owner) && reference.uid === uidOf(owner.object);

/** Whether the reference is to an earlier object with the owner's name. */
const isStale = (reference: OwnerReference, owner: Owner): boolean =>
  isOfType(reference, owner) &&
  reference.name === owner.object.metadata.name &&
  reference.uid !== owner.object.metadata.uid;

const ownersOf = (set: StatefulSet, pod: KubeObject): [Owner, Owner] => [
  { type: SET, object: set },
  { type: POD, object: pod },
];

/**
 * Whether the claim is about to be deleted with an earlier Pod `podName`, which was scaled down. A new Pod must wait until the claim is
 * deleted.
 */
export function isStaleClaim(set: StatefulSet, claim: PersistentVolumeClaim, podName: string): boolean {
  if (!policyOf(set).onScale) return false;
  const none: Owner = { type: POD, object: { ...POD, metadata: { name: podName } } };
  return (claim.metadata.ownerReferences ?? []).some((reference) => isStale(reference, none));
}

export interface ClaimOwners {
  /** The owner references to write; undefined if the claim has them already, or is about to be deleted with an earlier owner. */
  references: OwnerReference[] | undefined;
  /** Whether another controller owns the claim, so that the retention policy is ignored. */
  hasConflict: boolean;
}

/** Applies the retention policy. `isScaledDown`: whether the ordinal of the Pod is out of range. */
export function claimOwners(
  set: StatefulSet,
  pod: Pod,
  isScaledDown: boolean,
  claim: PersistentVolumeClaim,
): ClaimOwners {
  const before = claim.metadata.ownerReferences ?? [];
  const owners = ownersOf(set, pod);
  const { onScale, onDelete } = policyOf(set);
  const isOwn = (reference: OwnerReference): boolean => owners.some((owner) => refersTo(reference, owner));
  // The claim is about to be deleted with an earlier StatefulSet or Pod of the same name.
  if (before.some((reference) => owners.some((owner) => isStale(reference, owner))))
    return { references: undefined, hasConflict: false };
  const hasConflict =
    (onScale || onDelete) && before.some((reference) => reference.controller === true && !isOwn(reference));
  const [setOwner, podOwner] = owners;
  const wanted = hasConflict ? undefined : wantedOwner(setOwner, podOwner, { onScale, onDelete, isScaledDown });
  const own = before.filter(isOwn);
  const isRight =
    wanted === undefined
      ? own.length === 0
      : own.length === 1 && own.every((reference) => reference.controller === true && refersTo(reference, wanted));
  if (isRight) return { references: undefined, hasConflict };
  const others = before.filter((reference) => !isOwn(reference));
  return { references: wanted === undefined ? others : [...others, referenceTo(wanted)], hasConflict };
}

function wantedOwner(
  set: Owner,
  pod: Owner,
  { onScale, onDelete, isScaledDown }: { onScale: boolean; onDelete: boolean; isScaledDown: boolean },
): Owner | undefined {
  if (onScale && isScaledDown) return pod;
  return onDelete ? set : undefined;
}

const referenceTo = ({ type, object }: Owner): OwnerReference => ({
  ...type,
  name: object.metadata.name,
  uid: uidOf(object),
  controller: true,
  blockOwnerDeletion: true,
});
