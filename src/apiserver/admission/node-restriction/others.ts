import { mirroredUid } from '../../../api/core/v1/pod/mirror.ts';
import type { PersistentVolumeClaim, Pod, PodRecord } from '../../../api/generated/types.ts';
import { PODS } from '../../../api/resources.ts';
import { jsonEqual } from '../../../machinery/json-value.ts';
import { objectKey, resourcePrefix } from '../../cache/keys.ts';
import type { AdmissionRequest } from '../plugin.ts';
import { quoted, type Restriction, refusal } from './restriction.ts';

const nameIn = ({ object, name, operation }: AdmissionRequest): string | undefined =>
  operation === 'CREATE' ? object?.metadata.name : name;

export const restrictLease: Restriction = (nodeName, request) => {
  if (request.namespace !== 'kube-node-lease')
    throw refusal(request, 'can only access leases in the "kube-node-lease" system namespace');
  if (nameIn(request) !== nodeName)
    throw refusal(request, 'can only access node lease with the same name as the requesting node');
};

export const restrictCsiNode: Restriction = (nodeName, request) => {
  if (nameIn(request) !== nodeName)
    throw refusal(request, 'can only access CSINode with the same name as the requesting node');
};

/** Allows changes only of the status fields about the expansion of the volume, such as `capacity`. */
export const restrictClaim: Restriction = (nodeName, request) => {
  if (request.subresource !== 'status') throw refusal(request, 'may only update PVC status');
  if (request.operation !== 'UPDATE') throw refusal(request, `unexpected operation ${quoted(request.operation)}`);
  const [after, before] = [request.object, request.old].map((claim) => fixedPart(claim as PersistentVolumeClaim));
  if (jsonEqual(after, before)) return;
  const text = `node ${quoted(nodeName)} is not allowed to update fields other than status.capacity and status.conditions`;
  throw refusal(request, text);
};

function fixedPart({ metadata, status, ...rest }: PersistentVolumeClaim): unknown {
  const { resourceVersion: _, managedFields: __, ...fixedMetadata } = metadata;
  const { capacity, conditions, allocatedResources, allocatedResourceStatuses, ...fixedStatus } = status ?? {};
  return { ...rest, metadata: fixedMetadata, status: fixedStatus };
}

const POD_PREFIX = resourcePrefix(PODS.group, PODS.resource);

/**
 * PodRecord is a kind of lifepod. A node may write only records that name the node. If the Pod of the record exists, the Pod must be on the
 * node.
 */
export const restrictPodRecord: Restriction = (nodeName, request, { cache }) => {
  const [record, old] = [request.object, request.old] as (PodRecord | undefined)[];
  const refuse = () => refusal(request, `node ${quoted(nodeName)} can only write records of its own pods`);
  if (old?.nodeName && old.nodeName !== nodeName) throw refuse();
  if (record === undefined) return;
  if (record.nodeName !== nodeName) throw refuse();
  const pod = cache.get(objectKey(POD_PREFIX, request.namespace, record.podName)) as Pod | undefined;
  if (pod === undefined || pod.spec?.nodeName === nodeName) return;
  if (pod.metadata.uid === record.podUID || mirroredUid(pod) === record.podUID) throw refuse();
};
