/**
 * Computes the endpoints of a Service's slices, grouped by their ports.
 * Source: podToEndpoint, getEndpointPorts and ReconcileHints of the package endpointslice of v1.33 (behavior).
 */
import type { DiscoveryV1EndpointPort, Endpoint, Node, Pod, Service } from '../../api/generated/types.ts';
import type { IpFamily } from '../../machinery/ip.ts';
import { isPodReady } from '../ownership/pod-state.ts';
import { addressesOf, hostnameOf, isEndpoint, podReference, targetPortOf } from '../service-pods/pod-endpoint.ts';

export const ZONE_LABEL = 'topology.kubernetes.io/zone';

export interface DesiredGroup {
  ports: DiscoveryV1EndpointPort[];
  /** By endpointKey(). */
  endpoints: Map<string, { endpoint: Endpoint; pod: Pod }>;
}

/** The identity of an endpoint. If only other fields change, the endpoint stays in its slice. */
export const endpointKey = ({ addresses, hostname = '', targetRef }: Endpoint): string =>
  JSON.stringify([[...addresses].sort(), hostname, targetRef?.namespace ?? '', targetRef?.name ?? '']);

/** A key that does not depend on the order of the ports. */
export const portsKey = (ports: readonly DiscoveryV1EndpointPort[] = []): string =>
  JSON.stringify(
    ports
      .map(({ name = '', port, protocol = 'TCP', appProtocol }) =>
        JSON.stringify([name, port ?? null, protocol, appProtocol ?? null]),
      )
      .sort(),
  );

/** Returns the IP families for which the Service gets slices. A headless Service without families gets both. */
export function addressTypesOf({ spec }: Service): IpFamily[] {
  const types = (spec?.ipFamilies ?? []).filter((family) => family === 'IPv4' || family === 'IPv6');
  if (types.length > 0) return types;
  const { clusterIP } = spec ?? {};
  if (!clusterIP || clusterIP === 'None') return ['IPv4', 'IPv6'];
  return [clusterIP.includes(':') ? 'IPv6' : 'IPv4'];
}

function portsFor(pod: Pod, service: Service): DiscoveryV1EndpointPort[] {
  return (service.spec?.ports ?? []).flatMap((port) => {
    const number = targetPortOf(pod, port);
    if (number === undefined) return [];
    const { name = '', protocol = 'TCP', appProtocol } = port;
    return [{ name, port: number, protocol, ...(appProtocol === undefined ? {} : { appProtocol }) }];
  });
}

function endpointOf(pod: Pod, node: Node | undefined, service: Service, addresses: string[]): Endpoint {
  const serving = isPodReady(pod);
  const terminating = pod.metadata.deletionTimestamp !== undefined;
  const ready = service.spec?.publishNotReadyAddresses === true || (serving && !terminating);
  const nodeName = pod.spec?.nodeName;
  const zone = node?.metadata.labels?.[ZONE_LABEL];
  const hostname = hostnameOf(pod, service);
  const hinted = zone && ready && service.spec?.trafficDistribution === 'PreferClose';
  return {
    addresses,
    conditions: { ready, serving, terminating },
    ...(hostname === undefined ? {} : { hostname }),
    ...(nodeName ? { nodeName } : {}),
    targetRef: podReference(pod),
    ...(zone ? { zone } : {}),
    ...(hinted ? { hints: { forZones: [{ name: zone }] } } : {}),
  };
}

/**
 * Groups the endpoints of one family by portsKey(). Omits Pods whose node does not exist, because they are about to be deleted, unless the
 * Service publishes addresses that are not ready.
 */
export function desiredGroups(
  service: Service,
  pods: readonly Pod[],
  nodeNamed: (name: string) => Node | undefined,
  type: IpFamily,
): Map<string, DesiredGroup> {
  const groups = new Map<string, DesiredGroup>();
  for (const pod of pods) {
    if (!isEndpoint(pod, true)) continue;
    const addresses = addressesOf(pod, type);
    const node = nodeNamed(pod.spec?.nodeName ?? '');
    if (addresses.length === 0 || (node === undefined && service.spec?.publishNotReadyAddresses !== true)) continue;
    const ports = portsFor(pod, service);
    const key = portsKey(ports);
    const group = groups.get(key) ?? { ports, endpoints: new Map() };
    groups.set(key, group);
    const endpoint = endpointOf(pod, node, service, addresses);
    group.endpoints.set(endpointKey(endpoint), { endpoint, pod });
  }
  return groups;
}
