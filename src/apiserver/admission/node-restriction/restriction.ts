import type { Node, Pod } from '../../../api/generated/types.ts';
import { NODES, PODS } from '../../../api/resources.ts';
import type { KubeObject, ResourceRef } from '../../../machinery/meta.ts';
import { type ApiError, forbidden, notFound } from '../../../machinery/status.ts';
import { objectKey, resourcePrefix } from '../../cache/keys.ts';
import type { AdmissionRequest, AdmissionServices } from '../plugin.ts';

/**
 * Throws, or rejects with, 403 Forbidden if the node may not send the request, and 404 NotFound if an object that the check needs does not
 * exist.
 */
export type Restriction = (
  nodeName: string,
  request: AdmissionRequest,
  services: Pick<AdmissionServices, 'cache' | 'authorizer'>,
) => void | Promise<void>;

export const refusal = ({ groupResource, name }: AdmissionRequest, cause: string): ApiError =>
  forbidden(groupResource, name, cause);

export const quoted = (text: string): string => JSON.stringify(text);

type Reads = Pick<AdmissionServices, 'cache'>;

function existing(
  { cache }: Reads,
  { group, resource }: ResourceRef,
  namespace: string | undefined,
  name: string,
): KubeObject {
  const found = cache.get(objectKey(resourcePrefix(group, resource), namespace, name));
  if (found === undefined) throw notFound({ group, resource }, name);
  return found;
}

export const existingPod = (services: Reads, namespace: string, name: string): Pod =>
  existing(services, PODS, namespace, name) as Pod;

export const existingNode = (services: Reads, name: string): Node => existing(services, NODES, undefined, name) as Node;
