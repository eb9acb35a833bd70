/** Parses the range of cluster IPs, an IPv4 network in CIDR notation, and converts between its addresses and offsets. */
import { formatCidr, formatIpv4, parseIpv4, tryParseCidr } from '../../machinery/cidr.ts';

export interface ServiceRange {
  /** The network in CIDR notation, such as `10.96.0.0/16`. */
  cidr: string;
  /** The first address of the network as a 32-bit number. Offsets count from this address. */
  base: number;
  /** The offset of the last assignable address; the next one is the broadcast address. */
  lastOffset: number;
  /**
   * The addresses at the offsets 1 to lowerSize are allocated last, because users are expected to choose addresses from this part.
   * lowerSize is 0 for small ranges, which have no such part.
   */
  lowerSize: number;
  /**
   * The offsets of addresses that are allocated only if a Service requests them: 1 for the Service `kubernetes`, 10 for the DNS
   * Service.
   */
  reservedOffsets: ReadonlySet<number>;
}

/** Parses the network. Throws an Error unless it is an IPv4 network from /8 to /28. A /28 has 14 assignable addresses. */
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

/** Returns the offset of the address in the range; undefined if the address is outside the range or cannot be assigned. */
export function offsetOf(range: ServiceRange, address: string): number | undefined {
  const value = parseIpv4(address);
  if (value === undefined) return undefined;
  const offset = value - range.base;
  return offset >= 1 && offset <= range.lastOffset ? offset : undefined;
}

/** Returns the cluster IP of the Service `kubernetes`. */
export const kubernetesServiceAddress = (cidr: string): string => addressAt(parseServiceCidr(cidr), 1);

/** Returns the cluster IP that the DNS Service has by convention. */
export const dnsServiceAddress = (cidr: string): string => addressAt(parseServiceCidr(cidr), 10);
