/** The range of cluster IPs: IPv4, given as a CIDR. */
import { formatCidr, formatIpv4, parseIpv4, tryParseCidr } from '../../../machinery/cidr.ts';

export interface ServiceRange {
  /** `10.96.0.0/16` */
  cidr: string;
  /** The network's address as a number. */
  base: number;
  /** The offset of the last assignable address; the next one is the broadcast address. */
  lastOffset: number;
  /** Addresses at offsets 1 to lowerSize are assigned last, because users choose from these. */
  lowerSize: number;
  /** Never assigned unless requested: offset 1 is the Service `kubernetes`, offset 10 the DNS. */
  reservedOffsets: ReadonlySet<number>;
}

/** Throws unless the text is an IPv4 CIDR from /8 to /28, which has room for 14 Services. */
export function parseServiceCidr(text: string): ServiceRange {
  const range = tryParseCidr(text);
  if (range === undefined || range.prefixLength < 8 || range.prefixLength > 28) {
    throw new Error(
      `the Service CIDR ${JSON.stringify(text)} is not an IPv4 network from /8 to /28, such as 10.96.0.0/16`,
    );
  }
  const size = 2 ** (32 - range.prefixLength);
  // Source: calculateRangeOffset of upstream's ipallocator: min(max(16, size/16), 256), 0 for small ranges.
  const lowerSize = size - 2 < 16 ? 0 : Math.min(Math.max(16, Math.floor(size / 16)), 256);
  const fit = Math.min(lowerSize, size - 2);
  return {
    cidr: formatCidr(range),
    base: range.base,
    lastOffset: size - 2,
    lowerSize: fit,
    reservedOffsets: new Set([1, 10]),
  };
}

export const addressAt = (range: ServiceRange, offset: number): string => formatIpv4(range.base + offset);

/** The offset of an address in the range; undefined if it cannot be assigned. */
export function offsetOf(range: ServiceRange, address: string): number | undefined {
  const value = parseIpv4(address);
  if (value === undefined) return undefined;
  const offset = value - range.base;
  return offset >= 1 && offset <= range.lastOffset ? offset : undefined;
}

/** The address of the Service `kubernetes`. */
export const kubernetesServiceAddress = (cidr: string): string => addressAt(parseServiceCidr(cidr), 1);

/** The address that the cluster's DNS Service has by convention. */
export const dnsServiceAddress = (cidr: string): string => addressAt(parseServiceCidr(cidr), 10);
