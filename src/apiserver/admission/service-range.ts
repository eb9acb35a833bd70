/** Parses the configured ranges of cluster IPs, and determines which addresses of a range Services can get. */
import { formatIp, formatIpRange, type IpRange, parseIpRange, sizeOf } from '../../machinery/ip.ts';

export interface ServiceRange extends IpRange {
  /** The first and the last address that a Service can get. If the first is greater than the last, Services can get no address. */
  first: bigint;
  last: bigint;
  /**
   * The number of addresses at the beginning of the range that are allocated last, because users choose addresses from this part; 0 for
   * small ranges.
   * Source: KEP-3070, calculateRangeOffset of upstream's ipallocator.
   */
  lowerSize: bigint;
}

/**
 * Returns the range with the addresses that Services can get. The first address of a range is never allocated, and neither is the last
 * address of an IPv4 range, the broadcast address.
 */
export function serviceRange(range: IpRange): ServiceRange {
  const { family, base } = range;
  const size = sizeOf(range);
  const sixteenth = size / 16n;
  const lowerSize = size <= 16n ? 0n : sixteenth < 16n ? 16n : sixteenth > 256n ? 256n : sixteenth;
  return { ...range, first: base + 1n, last: base + size - (family === 'IPv4' ? 2n : 1n), lowerSize };
}

/** The shortest and longest prefixes of configured ranges. A /28 has 14 usable addresses, a /124 has 15. */
const PREFIXES = { IPv4: [8, 28], IPv6: [64, 124] } as const;

/**
 * Parses one range, or two ranges of different families with a comma between them. The family of the first range is the default. Throws an
 * Error if a range is neither an IPv4 network from /8 to /28 nor an IPv6 network from /64 to /124, or if both ranges have the same family.
 */
export function parseServiceCidrs(text: string): ServiceRange[] {
  const ranges = text.split(',').map((part) => {
    const range = parseIpRange(part);
    const [shortest, longest] = PREFIXES[range?.family ?? 'IPv4'];
    if (range === undefined || range.prefixLength < shortest || range.prefixLength > longest) {
      throw new Error(
        `the Service CIDR ${JSON.stringify(part)} is neither an IPv4 network from /8 to /28, such as 10.96.0.0/16, nor an IPv6 network from /64 to /124, such as fd00:10:96::/112`,
      );
    }
    return serviceRange(range);
  });
  if (ranges.length > 2 || (ranges.length === 2 && ranges[0]?.family === ranges[1]?.family)) {
    throw new Error(`the Service CIDRs ${JSON.stringify(text)} are more than one for each IP family`);
  }
  return ranges;
}

const addressesAt = (cidrs: string, offset: bigint): [string, ...string[]] =>
  parseServiceCidrs(cidrs).map(({ family, base }) => formatIp({ family, value: base + offset })) as [
    string,
    ...string[],
  ];

/**
 * The offsets of the addresses that are allocated only if a Service requests them: those of the Services `kubernetes` (1) and `kube-dns`
 * (10).
 */
export const RESERVED_OFFSETS: ReadonlySet<bigint> = new Set([1n, 10n]);

/** Returns the cluster IP of the Service `kubernetes`, in the first of the configured ranges. */
export const kubernetesServiceAddress = (cidrs: string): string => kubernetesServiceAddresses(cidrs)[0];

/** Returns the address at offset 1 of each configured range, in the order of the ranges. */
export const kubernetesServiceAddresses = (cidrs: string): [string, ...string[]] => addressesAt(cidrs, 1n);

/** Returns the cluster IP that the Service of the DNS has by convention: the address at offset 10 of the first configured range. */
export const dnsServiceAddress = (cidrs: string): string => addressesAt(cidrs, 10n)[0];

/** Returns the canonical texts of the configured ranges. */
export const serviceCidrsOf = (cidrs: string): string[] => parseServiceCidrs(cidrs).map(formatIpRange);
