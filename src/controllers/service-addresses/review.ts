/**
 * Compares Services with IPAddresses: finds missing, wrong and leaked IPAddresses, and Services that share an address or a port.
 * Source: the repair controllers of ipallocator and portallocator in pkg/registry/core/service of v1.33 (behavior, reasons and messages).
 */
import type { IPAddress, Service } from '../../api/generated/types.ts';
import {
  ALLOCATOR,
  FAMILY_LABEL,
  MANAGED_BY_LABEL,
  parentText,
} from '../../api/networking.k8s.io/v1/ip-address/index.ts';
import { formatIp, type IpAddress, parseIp } from '../../machinery/ip.ts';

export interface Finding {
  reason: string;
  message: string;
  /** The canonical address whose IPAddress must be created or replaced; undefined if the user must repair the Service. */
  repair?: string;
}

export interface Others {
  addressOf(canonical: string): IPAddress | undefined;
  serviceOf(namespace: string, name: string): Service | undefined;
  isInRange(ip: IpAddress): boolean;
  /** Whether a Service older than `service` has the node port. */
  isPortOfOlder(port: number, service: Service): boolean;
}

const nameOf = ({ metadata }: Service): string => `${metadata.namespace}/${metadata.name}`;

const addressesOf = ({ spec }: Service): IpAddress[] =>
  spec?.type === 'ExternalName' ? [] : (spec?.clusterIPs ?? []).flatMap((text) => parseIp(text) ?? []);

const has = (service: Service, canonical: string): boolean =>
  addressesOf(service).some((ip) => formatIp(ip) === canonical);

export const nodePortsOf = ({ spec }: Service): number[] => [
  ...new Set(
    [...(spec?.ports ?? []).map(({ nodePort }) => nodePort), spec?.healthCheckNodePort].flatMap((port) => port || []),
  ),
];

const isManaged = ({ metadata }: IPAddress): boolean => metadata.labels?.[MANAGED_BY_LABEL] === ALLOCATOR;

function reviewAddress(service: Service, ip: IpAddress, others: Others): Finding | undefined {
  const address = formatIp(ip);
  const shown = `Cluster IP [${ip.family}]: ${address}`;
  if (!others.isInRange(ip)) {
    const message = `${shown} is not within any configured Service CIDR; please recreate service`;
    return { reason: 'ClusterIPOutOfRange', message };
  }
  const notAllocated = (message: string): Finding => ({ reason: 'ClusterIPNotAllocated', message, repair: address });
  const existing = others.addressOf(address);
  if (existing === undefined) return notAllocated(`${shown} is not allocated; repairing`);
  const wrong = `the ClusterIP [${ip.family}]: ${address} for Service ${nameOf(service)} has a wrong reference; repairing`;
  const { group, resource, namespace = '', name = '' } = existing.spec?.parentRef ?? {};
  if (group || resource !== 'services') return notAllocated(wrong);
  if (namespace !== service.metadata.namespace || name !== service.metadata.name) {
    const parent = others.serviceOf(namespace, name);
    if (parent === undefined || !has(parent, address)) return notAllocated(wrong);
    const message = `Cluster IP [${ip.family}]:${address} was assigned to multiple services; please recreate service`;
    return { reason: 'ClusterIPAlreadyAllocated', message };
  }
  const isLabeled = isManaged(existing) && existing.metadata.labels?.[FAMILY_LABEL] === ip.family;
  return isLabeled ? undefined : notAllocated(wrong);
}

export const reviewService = (service: Service, others: Others): Finding[] => [
  ...addressesOf(service).flatMap((ip) => reviewAddress(service, ip, others) ?? []),
  ...nodePortsOf(service)
    .filter((port) => others.isPortOfOlder(port, service))
    .map((port) => ({
      reason: 'PortAlreadyAllocated',
      message: `Port ${port} was assigned to multiple services; please recreate service`,
    })),
];

/** Returns why the IPAddress must be deleted; undefined if a Service has it, or if it does not belong to the allocator. */
export function reviewIpAddress(
  ipAddress: IPAddress,
  serviceOf: Others['serviceOf'],
): { reason: string; message: string } | undefined {
  if (!isManaged(ipAddress)) return undefined;
  const { name: address } = ipAddress.metadata;
  const parent = ipAddress.spec?.parentRef;
  if (parent?.group || parent?.resource !== 'services') {
    const shown = parent === undefined ? '' : parentText(parent);
    const message = `IPAddress ${address} appears to have been modified, not referencing a Service ${shown}: cleaning up`;
    return { reason: 'IPAddressNotAllocated', message };
  }
  const { namespace = '', name = '' } = parent;
  const service = serviceOf(namespace, name);
  const shown = `IPAddress: ${address} for Service ${namespace}/${name}`;
  if (service === undefined) {
    return { reason: 'IPAddressNotAllocated', message: `${shown} appears to have leaked: cleaning up` };
  }
  if (has(service, address)) return undefined;
  return { reason: 'IPAddressWrongReference', message: `${shown} has a wrong reference; cleaning up` };
}
