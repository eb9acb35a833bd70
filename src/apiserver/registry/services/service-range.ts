/** The range of cluster IPs: IPv4, given as a CIDR. */
import { isIPv4 } from 'node:net';

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

const numberOf = (address: string): number => address.split('.').reduce((sum, byte) => sum * 256 + Number(byte), 0);

/** Throws unless the text is an IPv4 CIDR from /8 to /28, which has room for 14 Services. */
export function parseServiceCidr(cidr: string): ServiceRange {
  const [address = '', bits = ''] = cidr.split('/');
  const length = /^\d+$/.test(bits) ? Number(bits) : -1;
  if (!isIPv4(address) || length < 8 || length > 28) {
    throw new Error(
      `the Service CIDR ${JSON.stringify(cidr)} is not an IPv4 network from /8 to /28, such as 10.96.0.0/16`,
    );
  }
  const size = 2 ** (32 - length);
  const base = Math.floor(numberOf(address) / size) * size;
  // Source: calculateRangeOffset of upstream's ipallocator: min(max(16, size/16), 256), 0 for small ranges.
  const lowerSize = size - 2 < 16 ? 0 : Math.min(Math.max(16, Math.floor(size / 16)), 256);
  const fit = Math.min(lowerSize, size - 2);
  return {
    cidr: `${textOf(base)}/${length}`,
    base,
    lastOffset: size - 2,
    lowerSize: fit,
    reservedOffsets: new Set([1, 10]),
  };
}

const textOf = (value: number): string => [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join('.');

export const addressAt = (range: ServiceRange, offset: number): string => textOf(range.base + offset);

/** The offset of an address in the range; undefined if it cannot be assigned. */
export function offsetOf(range: ServiceRange, address: string): number | undefined {
  if (!isIPv4(address)) return undefined;
  const offset = numberOf(address) - range.base;
  return offset >= 1 && offset <= range.lastOffset ? offset : undefined;
}

/** The address of the Service `kubernetes`. */
export const kubernetesServiceAddress = (cidr: string): string => addressAt(parseServiceCidr(cidr), 1);

/** The address that the cluster's DNS Service has by convention. */
export const dnsServiceAddress = (cidr: string): string => addressAt(parseServiceCidr(cidr), 10);
