/**
 * The metav1 types that all API objects share.
 * Timestamps are RFC 3339 strings in UTC, in the format that the API serves.
 * Source: Kubernetes API conventions, meta/v1 of v1.33.
 */

export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

export interface ManagedFieldsEntry {
  apiVersion?: string;
  fieldsType?: string;
  fieldsV1?: unknown;
  manager?: string;
  operation?: string;
  subresource?: string;
  time?: string;
}

export interface ObjectMeta {
  name: string;
  generateName?: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: OwnerReference[];
  finalizers?: string[];
  managedFields?: ManagedFieldsEntry[];
  selfLink?: string;
}

export interface ListMeta {
  resourceVersion?: string;
  continue?: string;
  remainingItemCount?: number;
  selfLink?: string;
}

/** Any API object. src/api/generated contains a narrower type for each kind. */
export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
}

export interface KubeList<T extends KubeObject = KubeObject> {
  apiVersion: string;
  kind: string;
  metadata: ListMeta;
  items: T[];
}

export interface StatusCause {
  reason?: string;
  message?: string;
  field?: string;
}

export interface StatusDetails {
  name?: string;
  group?: string;
  kind?: string;
  uid?: string;
  causes?: StatusCause[];
  retryAfterSeconds?: number;
}

/**
 * The response to a failed request (status Failure), or to a successful request that returns no object (status Success), such as the
 * immediate deletion of a ConfigMap.
 */
export interface Status {
  kind: 'Status';
  apiVersion: 'v1';
  metadata: ListMeta;
  status: 'Success' | 'Failure';
  message?: string;
  reason?: string;
  details?: StatusDetails;
  code?: number;
}

/** `group`: '' is the core group. `resource`: the plural name. */
export interface ResourceRef {
  group: string;
  version: string;
  resource: string;
}

/** Returns '' if the object has no UID. Each stored object has a UID, but the object of a create request may lack one. */
export const uidOf = ({ metadata }: { metadata: ObjectMeta }): string => metadata.uid ?? '';
