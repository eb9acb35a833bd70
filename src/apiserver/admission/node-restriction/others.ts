/** What nodes may write into Leases, CSINodes and PersistentVolumeClaims. */
import type { PersistentVolumeClaim } from '../../../api/generated/types.ts';
import { jsonEqual } from '../../../machinery/json-value.ts';
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

/** A node may write only what a file system's expansion changes in the status. */
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
