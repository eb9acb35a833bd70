/**
 * Reads and builds the reference from an object to its controller.
 * Source: k8s.io/apimachinery/pkg/apis/meta/v1/controller_ref.go of v1.33 (behavior).
 */
import type { KubeObject, OwnerReference, ResourceRef } from '../../machinery/meta.ts';
import { uidOf } from '../../machinery/meta.ts';

export interface OwnerKind {
  apiVersion: string;
  kind: string;
  resource: ResourceRef;
}

export const controllerOf = ({ metadata }: KubeObject): OwnerReference | undefined =>
  metadata.ownerReferences?.find(({ controller }) => controller === true);

export const isControlledBy = (object: KubeObject, owner: KubeObject): boolean =>
  controllerOf(object)?.uid === uidOf(owner);

/** The key in the index controllerUids of the namespace's objects without a controller. */
export const orphanKey = (namespace: string | undefined): string => `orphan/${namespace ?? ''}`;

/** An index key: the UID of the object's controller, or orphanKey() of its namespace if there is none. */
export const controllerUids = (object: KubeObject): readonly string[] => [
  controllerOf(object)?.uid ?? orphanKey(object.metadata.namespace),
];

export const controllerReference = (owner: KubeObject, { apiVersion, kind }: OwnerKind): OwnerReference => ({
  apiVersion,
  kind,
  name: owner.metadata.name,
  uid: uidOf(owner),
  controller: true,
  blockOwnerDeletion: true,
});
