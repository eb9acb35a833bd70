/**
 * Limits what nodes may write, by kind, and lets only nodes create mirror Pods. The Node authorizer decides which objects a node may
 * address; the rules in this folder are about the contents of the objects.
 * Source: the plugins NodeRestriction and ServiceAccount of v1.33 (behavior and wording).
 */
import { admitMirrorPod, isMirrorPod } from '../../../api/core/v1/pod/mirror.ts';
import type { Pod } from '../../../api/generated/types.ts';
import { POD_RECORDS } from '../../../api/lifepod.io/v1/pod-record/index.ts';
import {
  CERTIFICATE_SIGNING_REQUESTS,
  LEASES,
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  PODS,
  SERVICE_ACCOUNTS,
} from '../../../api/resources.ts';
import type { ResourceRef } from '../../../machinery/meta.ts';
import { isInNodesGroup, nodeNameOf } from '../../auth/authorization/node/node-identity.ts';
import type { AdmissionRequest, AdmissionTarget, PluginFactory } from '../plugin.ts';
import { isKindOf } from '../targets.ts';
import { restrictCertificateRequest } from './certificate-requests.ts';
import { restrictNode } from './nodes.ts';
import { restrictClaim, restrictCsiNode, restrictLease, restrictPodRecord } from './others.ts';
import { restrictPod } from './pods.ts';
import { type Restriction, refusal } from './restriction.ts';
import { restrictToken } from './tokens.ts';

const CSI_NODES: ResourceRef = { group: 'storage.k8s.io', version: 'v1', resource: 'csinodes' };

const restrictions: readonly (readonly [ResourceRef, Restriction])[] = [
  [PODS, restrictPod],
  [NODES, restrictNode],
  [PERSISTENT_VOLUME_CLAIMS, restrictClaim],
  [SERVICE_ACCOUNTS, restrictToken],
  [LEASES, restrictLease],
  [CSI_NODES, restrictCsiNode],
  [CERTIFICATE_SIGNING_REQUESTS, restrictCertificateRequest],
  [POD_RECORDS, restrictPodRecord],
];

const restrictionFor = ({ kind }: AdmissionTarget): Restriction | undefined =>
  restrictions.find(([ref]) => isKindOf(kind, ref))?.[1];

export const nodeRestriction: PluginFactory = (services) => {
  function restrict(request: AdmissionRequest): void | Promise<void> {
    const { user } = request.context;
    const nodeName = nodeNameOf(user);
    if (nodeName === undefined) return;
    if (nodeName === '') throw refusal(request, `could not determine node from user ${JSON.stringify(user.name)}`);
    return restrictionFor(request)?.(nodeName, request, services);
  }
  return {
    name: 'NodeRestriction',
    handles: (target) => restrictionFor(target) !== undefined,
    check(request) {
      if (isNewMirrorPod(request)) admitMirrorPod(request.object as Pod, isInNodesGroup(request.context.user));
      return restrict(request);
    },
    validate: (request) => (request.operation === 'DELETE' ? restrict(request) : undefined),
  };
};

const isNewMirrorPod = (request: AdmissionRequest): boolean =>
  request.operation === 'CREATE' &&
  request.subresource === '' &&
  isKindOf(request.kind, PODS) &&
  isMirrorPod(request.object as Pod);
