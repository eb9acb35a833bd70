/** The range of cluster IPs: IPv4, given as a CIDR. */
import { isIPv4 } from 'node:net';

export interface ServiceRange {
  /** `10.96.0.0/16` */
  cidr: string;
  /** The network's address as a number. */
  base: number;
  /** Of the last address that can be given: the one after it is the broadcast address. */
  lastOffset: number;
  /** Addresses 1 to lowerSize are given last: users choose from these. */
  lowerSize: number;
  /** Never given unless asked for: the first is the Service `kubernetes`, the tenth the DNS. */
  reservedOffsets: ReadonlySet<number>;
}

const numberOf = (address: string): number => address.split('.').reduce((sum, byte) => sum * 256 + Number(byte), 0);

/** Throws where the text is no IPv4 CIDR with room for at least 14 Services (/28). */
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
  // Source: calculateRangeOffset of upstream's ipallocator: min(max(16, size/16), 256), nothing for small ranges.
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

/** The place of an address in the range, or undefined where it is not one that can be given. */
export function offsetOf(range: ServiceRange, address: string): number | undefined {
  if (!isIPv4(address)) return undefined;
  const offset = numberOf(address) - range.base;
  return offset >= 1 && offset <= range.lastOffset ? offset : undefined;
}

/** The address of the Service `kubernetes`. */
export const kubernetesServiceAddress = (cidr: string): string => addressAt(parseServiceCidr(cidr), 1);

/** The address that the cluster's DNS Service has by convention. */
export const dnsServiceAddress = (cidr: string): string => addressAt(parseServiceCidr(cidr), 10);
