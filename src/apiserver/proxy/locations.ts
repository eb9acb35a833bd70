/**
 * Finds the address to which the proxy subresource of a Pod, a Service or a Node forwards requests. The address belongs to a Pod of the
 * namespace in the path, or to the Node, and is neither a loopback nor a link-local address, so that the proxy reaches nothing else.
 * Source: ResourceLocation of pkg/registry/core/pod/strategy.go, pkg/registry/core/node/strategy.go and pkg/registry/core/service/storage
 * of v1.33 (behavior and messages).
 */
import { randomInt } from 'node:crypto';
import type { EndpointAddress, EndpointSubset, Endpoints, Node, Pod, Service } from '../../api/generated/types.ts';
import { ENDPOINTS, NODES, PODS, SERVICES } from '../../api/resources.ts';
import { parseIp } from '../../machinery/ip.ts';
import { specialIpErrors } from '../../machinery/ip-address.ts';
import type { KubeObject, ResourceRef } from '../../machinery/meta.ts';
import { badRequest, isApiError, serviceUnavailable } from '../../machinery/status.ts';

export interface Location {
  scheme: 'http' | 'https';
  ip: string;
  /** The port as the client or the Pod names it, which may not be a valid port. Absent: the default port of the scheme. */
  port?: string;
}

/** Reads an object of the namespace in the path. Rejects with 404 NotFound if the object does not exist. */
export type Read = (ref: ResourceRef, name: string) => Promise<KubeObject>;

interface Target {
  scheme: 'http' | 'https';
  name: string;
  port: string;
}

/** Parses `name`, `name:port` or `scheme:name:port`; undefined if the text has none of these forms. */
export function parseTarget(id: string): Target | undefined {
  const parts = id.split(':');
  if (parts.length > 3) return undefined;
  const [scheme = '', name = '', port = ''] = parts.length === 3 ? parts : ['', ...parts];
  if (name === '' || !['', 'http', 'https'].includes(scheme)) return undefined;
  return { scheme: scheme === 'https' ? 'https' : 'http', name, port };
}

const isProxyable = (ip: string): boolean => parseIp(ip) !== undefined && specialIpErrors(ip).length === 0;

/**
 * Resolves to the address of the Pod, with the port in `id` or, by default, the first port that a container declares. Rejects with 400
 * BadRequest if `id` is malformed (see parseTarget()), or if the Pod has no address or one that the proxy must not reach, and with 404
 * NotFound if the Pod does not exist.
 */
export async function locatePod(id: string, read: Read): Promise<Location> {
  const target = parseTarget(id);
  if (target === undefined) throw badRequest(`invalid pod request ${JSON.stringify(id)}`);
  const pod = (await read(PODS, target.name)) as Pod;
  const { podIP: ip = '' } = pod.status ?? {};
  if (!isProxyable(ip)) throw badRequest('address not allowed');
  const declared = pod.spec?.containers.find(({ ports = [] }) => ports.length > 0)?.ports?.[0]?.containerPort;
  const port = target.port || declared?.toString();
  return { scheme: target.scheme, ip, ...(port === undefined ? {} : { port }) };
}

const KUBELET_PORT = '10250';

/** The name of a node whose own documents are requested, or an address. */
export type NodeLocation = { node: string } | Location;

/**
 * Resolves to the name of the node if `id` has no port or the port of upstream's kubelet; otherwise to the address of the node. Rejects
 * with 400 BadRequest if `id` is malformed (see parseTarget()), if the node has no address or one that the proxy must not reach, or if the
 * port is `apiPort`, because the API server would send the request to itself. Rejects with 404 NotFound if the node does not exist.
 */
export async function locateNode(id: string, read: Read, apiPort: number | undefined): Promise<NodeLocation> {
  const target = parseTarget(id);
  if (target === undefined) throw badRequest(`invalid node request ${JSON.stringify(id)}`);
  const { scheme, name, port } = target;
  const { status } = (await read(NODES, name)) as Node;
  if (port === '' || port === KUBELET_PORT) return { node: name };
  const ip = status?.addresses?.find(({ type }) => type === 'InternalIP')?.address ?? '';
  if (!isProxyable(ip)) throw badRequest('address not allowed');
  if (Number(port) === apiPort) throw badRequest('port not allowed');
  return { scheme, ip, port };
}

/**
 * Resolves to the address of a random ready endpoint of the Service that is a Pod of its namespace. Rejects with 503 ServiceUnavailable if
 * there is none, or if the Service does not have the port, with 400 BadRequest if `id` is malformed (see parseTarget()), and with 404
 * NotFound if the Service or its Endpoints do not exist.
 */
export async function locateService(id: string, read: Read): Promise<Location> {
  const target = parseTarget(id);
  if (target === undefined) throw badRequest(`invalid service request ${JSON.stringify(id)}`);
  const { scheme, name } = target;
  const portName = await portNameOf(target, read);
  const { metadata, subsets = [] } = (await read(ENDPOINTS, name)) as Endpoints;
  if (subsets.length === 0) throw noEndpoints(name);
  for (const { addresses = [], ports = [] } of fromRandom<EndpointSubset>(subsets)) {
    const port = ports.find((each) => (each.name ?? '') === portName)?.port;
    if (port === undefined) continue;
    for (const address of fromRandom(addresses)) {
      if (await isOfPod(address, metadata.namespace, read)) return { scheme, ip: address.ip, port: String(port) };
    }
  }
  throw noEndpoints(id);
}

const noEndpoints = (id: string) => serviceUnavailable(`no endpoints available for service ${JSON.stringify(id)}`);

/** Resolves to the name of the Service's port. A port that is not a number is already a name. */
async function portNameOf({ name, port }: Target, read: Read): Promise<string> {
  if (!/^[+-]?\d+$/.test(port)) return port;
  const { spec } = (await read(SERVICES, name)) as Service;
  const found = spec?.ports?.find((each) => each.port === Number(port));
  if (found === undefined) {
    throw serviceUnavailable(`no service port ${Number(port)} found for service ${JSON.stringify(name)}`);
  }
  return found.name ?? '';
}

/** Whether a Pod of the namespace has the address. Endpoints that a client has written could contain any address. */
async function isOfPod(
  { ip, targetRef }: EndpointAddress,
  namespace: string | undefined,
  read: Read,
): Promise<boolean> {
  if (targetRef?.name === undefined || targetRef.namespace !== namespace || !isProxyable(ip)) return false;
  try {
    const pod = (await read(PODS, targetRef.name)) as Pod;
    return pod.status?.podIPs?.some((each) => each.ip === ip) === true;
  } catch (error) {
    if (isApiError(error, 'NotFound')) return false;
    throw error;
  }
}

function fromRandom<T>(list: readonly T[]): readonly T[] {
  const first = list.length === 0 ? 0 : randomInt(list.length);
  return [...list.slice(first), ...list.slice(0, first)];
}
