import { isMirrorPod, MIRROR_ANNOTATION } from '../../../api/core/v1/pod/mirror.ts';
import type { Eviction, Pod } from '../../../api/generated/types.ts';
import { jsonEqual } from '../../../machinery/json-value.ts';
import type { AdmissionRequest } from '../plugin.ts';
import { existingNode, existingPod, quoted, type Restriction, refusal } from './restriction.ts';

export const restrictPod: Restriction = (nodeName, request, services) => {
  const { subresource, operation } = request;
  if (subresource === 'status') return restrictStatus(nodeName, request);
  if (subresource === 'eviction') return restrictEviction(nodeName, request, services);
  if (subresource !== '')
    throw refusal(
      request,
      `unexpected pod subresource ${quoted(subresource)}, only 'status' and 'eviction' are allowed`,
    );
  if (operation === 'CREATE') return restrictCreate(nodeName, request, services);
  if (operation === 'DELETE') {
    if (nodeOf(request.old) !== nodeName)
      throw refusal(request, `node ${quoted(nodeName)} can only delete pods with spec.nodeName set to itself`);
    return;
  }
  const text = `unexpected operation ${quoted(operation)}, node ${quoted(nodeName)} can only create and delete mirror pods`;
  throw refusal(request, text);
};

const nodeOf = (pod: unknown): string | undefined => (pod as Pod).spec?.nodeName;

const restrictCreate: Restriction = (nodeName, request, services) => {
  const pod = request.object as Pod;
  const node = `node ${quoted(nodeName)}`;
  const refuse = (cause: string) => refusal(request, cause);
  if (!isMirrorPod(pod))
    throw refuse(`pod does not have ${quoted(MIRROR_ANNOTATION)} annotation, ${node} can only create mirror pods`);
  if (nodeOf(pod) !== nodeName) throw refuse(`${node} can only create pods with spec.nodeName set to itself`);
  const [owner, ...others] = pod.metadata.ownerReferences ?? [];
  if (others.length > 0) throw refuse(`${node} can only create pods with a single owner reference set to itself`);
  if (owner === undefined || owner.apiVersion !== 'v1' || owner.kind !== 'Node' || owner.name !== nodeName)
    throw refuse(`${node} can only create pods with an owner reference set to itself`);
  if (owner.controller !== true)
    throw refuse(`${node} can only create pods with a controller owner reference set to itself`);
  if (owner.blockOwnerDeletion === true) throw refuse(`${node} must not set blockOwnerDeletion on an owner reference`);
  const { uid } = existingNode(services, nodeName).metadata;
  if (owner.uid !== uid) throw refuse(`node ${nodeName} UID mismatch: expected ${owner.uid} got ${uid}`);
};

function restrictStatus(nodeName: string, request: AdmissionRequest): void {
  const [old, pod] = [request.old as Pod, request.object as Pod];
  const node = `node ${quoted(nodeName)}`;
  if (nodeOf(old) !== nodeName)
    throw refusal(request, `${node} can only update pod status for pods with spec.nodeName set to itself`);
  if (!jsonEqual(old.metadata.labels ?? {}, pod.metadata.labels ?? {}))
    throw refusal(request, `${node} cannot update labels through pod status`);
  const [before = [], after = []] = [old.status?.resourceClaimStatuses, pod.status?.resourceClaimStatuses];
  if (!jsonEqual(before, after)) throw refusal(request, `${node} cannot update resource claim statues`);
}

const restrictEviction: Restriction = (nodeName, request, services) => {
  const name = request.name || (request.object as Eviction).metadata?.name;
  if (!name) throw refusal(request, 'could not determine pod from request data');
  if (nodeOf(existingPod(services, request.namespace, name)) !== nodeName)
    throw refusal(request, `node ${nodeName} can only evict pods with spec.nodeName set to itself`);
};
