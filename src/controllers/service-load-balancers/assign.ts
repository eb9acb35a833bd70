/**
 * Decides which Services of type LoadBalancer get the addresses of the nodes. Only one Service can use a port of these addresses: the
 * others wait until the port is free. A Service without addresses also waits while a node port or host port uses the port, so that the
 * Service does not take over the connections to the node port or host port.
 */
import type { LoadBalancerIngress, Node, Service } from '../../api/generated/types.ts';
import { type IpFamily, parseIp } from '../../machinery/ip.ts';
import type { KubeObject } from '../../machinery/meta.ts';

export interface Assignment {
  service: Service;
  /** The addresses at which clients reach the Service; an empty list while it waits. */
  ingress: LoadBalancerIngress[];
  waitsFor?: string;
}

/** Whether lifepod provides the load balancer. A Service with a class has a load balancer of another program. */
export const isBalanced = ({ metadata, spec }: Service): boolean =>
  spec?.type === 'LoadBalancer' && spec.loadBalancerClass === undefined && metadata.deletionTimestamp === undefined;

export const hasIngress = ({ status }: Service): boolean => (status?.loadBalancer?.ingress ?? []).length > 0;

/** Returns texts such as `TCP/80`. */
export const portsOf = ({ spec }: Service): string[] =>
  (spec?.ports ?? []).map(({ protocol = 'TCP', port }) => `${protocol}/${port}`);

export const nameOf = ({ metadata }: KubeObject): string => `${metadata.namespace}/${metadata.name}`;

/** Returns the InternalIPs of the nodes without duplicates, in the order of the node names. */
export function nodeAddresses(nodes: readonly Node[]): Record<IpFamily, string[]> {
  const found: Record<IpFamily, Set<string>> = { IPv4: new Set(), IPv6: new Set() };
  const sorted = [...nodes].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  for (const { status } of sorted)
    for (const { type, address } of status?.addresses ?? []) {
      const family = type === 'InternalIP' ? parseIp(address)?.family : undefined;
      if (family !== undefined) found[family].add(address);
    }
  return { IPv4: [...found.IPv4], IPv6: [...found.IPv6] };
}

/** Sort order: Services that already have addresses first, then by age. */
function precedes(a: Service, b: Service): number {
  const rank = (service: Service): string =>
    `${hasIngress(service) ? 0 : 1} ${service.metadata.creationTimestamp ?? ''} ${nameOf(service)}`;
  return rank(a) < rank(b) ? -1 : 1;
}

/**
 * Assigns the addresses to Services for which isBalanced() holds. `otherUse` describes what else uses a port, for a message; undefined if
 * nothing does.
 */
export function assignLoadBalancers(
  services: readonly Service[],
  nodes: readonly Node[],
  otherUse: (service: Service, port: string) => string | undefined,
): Assignment[] {
  const addresses = nodeAddresses(nodes);
  const holders = new Map<string, Service>();
  return [...services].sort(precedes).map((service) => {
    const ports = portsOf(service);
    const taken = ports.find((port) => holders.has(port));
    if (taken !== undefined) {
      const holder = nameOf(holders.get(taken) as Service);
      return { service, ingress: [], waitsFor: `port ${taken} is in use by the Service ${holder}` };
    }
    for (const port of hasIngress(service) ? [] : ports) {
      const other = otherUse(service, port);
      if (other === undefined) continue;
      return { service, ingress: [], waitsFor: `port ${port} is in use by ${other}: use another port for one of them` };
    }
    const families = service.spec?.ipFamilies ?? ['IPv4'];
    const ingress = families.flatMap((family) => addresses[family as IpFamily].map((ip) => ({ ip, ipMode: 'VIP' })));
    if (ingress.length === 0)
      return { service, ingress, waitsFor: 'no node has an address of the IP families of the Service' };
    for (const port of ports) holders.set(port, service);
    return { service, ingress };
  });
}
