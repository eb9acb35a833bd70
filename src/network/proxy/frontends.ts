/** The addresses and ports at which this node accepts traffic for a Service. */
import type { Service, ServicePort } from '../../api/generated/types.ts';
import { canonicalIp, type IpFamily, parseIp } from '../../machinery/ip.ts';
import { FAMILIES } from '../families.ts';
import { MAX_FRONTENDS } from './rule-limits.ts';

export interface Frontend {
  family: IpFamily;
  /**
   * `internal`: traffic to a cluster IP. `external` and `local`: traffic to an external IP, the address of a load balancer or a node port,
   * with the policy Cluster or Local.
   */
  policy: 'internal' | 'external' | 'local';
  /** Undefined for a node port, which is open on all addresses of the node. */
  address: string | undefined;
  isLoadBalancer: boolean;
  /** The key in the maps of addresses or node ports, in the spelling of nft(8): `10.96.0.7 . tcp . 80` or `tcp . 30080`. */
  key: string;
}

const PROXY_NAME = 'service.kubernetes.io/service-proxy-name';

/** The Service has no cluster IP, or a label says that another proxy handles it. */
export const isIgnored = ({ metadata, spec }: Service): boolean =>
  spec?.type === 'ExternalName' ||
  spec?.clusterIP === undefined ||
  spec.clusterIP === '' ||
  spec.clusterIP === 'None' ||
  metadata.labels?.[PROXY_NAME] !== undefined;

/** In canonical form. */
export const clusterIpsOf = ({ spec }: Service): string[] =>
  canonical(spec?.clusterIPs ?? (spec?.clusterIP === undefined ? [] : [spec.clusterIP]));

const canonical = (addresses: readonly (string | undefined)[]): string[] => [
  ...new Set(addresses.slice(0, MAX_FRONTENDS + 1).flatMap((address) => canonicalIp(address ?? '') ?? [])),
];

const outsidePolicy = ({ spec }: Service): Frontend['policy'] =>
  spec?.externalTrafficPolicy === 'Local' ? 'local' : 'external';

export type ServiceAddress = Omit<Frontend, 'key'> & { address: string };

/**
 * Returns the addresses of a Service without duplicates. `reserved`: addresses at which a program of the node itself serves, such as the
 * cluster's DNS; they are left out.
 */
export function addressesOf(service: Service, reserved: readonly string[]): ServiceAddress[] {
  const { spec = {}, status } = service;
  const outside = outsidePolicy(service);
  const at = (policy: Frontend['policy'], isLoadBalancer: boolean) => (address: string) => ({
    family: parseIp(address)?.family ?? 'IPv4',
    policy,
    address,
    isLoadBalancer,
  });
  const ingress = (status?.loadBalancer?.ingress ?? []).filter(({ ipMode }) => ipMode !== 'Proxy').map(({ ip }) => ip);
  const found = [
    ...clusterIpsOf(service).map(at('internal', false)),
    ...canonical(spec.type === 'LoadBalancer' ? ingress : []).map(at(outside, true)),
    ...canonical(spec.externalIPs ?? []).map(at(outside, false)),
  ].filter(({ address }) => !reserved.includes(address));
  const unique = new Map<string, ServiceAddress>();
  for (const each of found) if (!unique.has(each.address)) unique.set(each.address, each);
  return [...unique.values()];
}

export function frontendsOf(service: Service, addresses: readonly ServiceAddress[], port: ServicePort): Frontend[] {
  const protocol = (port.protocol || 'TCP').toLowerCase();
  const families = service.spec?.ipFamilies ?? familiesOf(clusterIpsOf(service));
  return [
    ...addresses.map((each) => ({ ...each, key: `${each.address} . ${protocol} . ${port.port}` })),
    ...nodePortsOf(families, port, protocol, outsidePolicy(service)),
  ];
}

const familiesOf = (addresses: readonly string[]): string[] =>
  addresses.map((address) => parseIp(address)?.family ?? 'IPv4');

function nodePortsOf(
  families: readonly string[],
  { nodePort }: ServicePort,
  protocol: string,
  policy: Frontend['policy'],
): Frontend[] {
  if (nodePort === undefined || nodePort === 0) return [];
  return FAMILIES.filter((family) => families.includes(family)).map((family) => ({
    family,
    policy,
    address: undefined,
    isLoadBalancer: false,
    key: `${protocol} . ${nodePort}`,
  }));
}
