/**
 * Reads and builds the reference from an object to the controller that manages the object.
 * Source: k8s.io/apimachinery/pkg/apis/meta/v1/controller_ref.go of v1.33 (behavior).
 */
import type { KubeObject, OwnerReference, ResourceRef } from '../../machinery/meta.ts';
import { uidOf } from '../../machinery/meta.ts';

/** The kind of the objects whose dependents a controller manages, such as Deployment. */
export interface OwnerKind {
  apiVersion: string;
  kind: string;
  resource: ResourceRef;
}

/** Returns the reference to the controller of the object; undefined if the object has none. */
export const controllerOf = ({ metadata }: KubeObject): OwnerReference | undefined =>
  metadata.ownerReferences?.find(({ controller }) => controller === true);

export const isControlledBy = (object: KubeObject, owner: KubeObject): boolean =>
  controllerOf(object)?.uid === uidOf(owner);

/** Returns the key of the namespace's objects without a controller in the index controllerUids. */
export const orphanKey = (namespace: string | undefined): string => `orphan/${namespace ?? ''}`;

/**
 * Returns the key for an index of objects by the UID of their controller. The key of an object without a controller is the orphanKey() of
 * its namespace.
 */
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
