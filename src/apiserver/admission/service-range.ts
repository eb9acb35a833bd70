import { formatIp, formatIpRange, type IpRange, parseIpRange, sizeOf } from '../../machinery/ip.ts';

export interface ServiceRange extends IpRange {
  /** The addresses that a Service can get. If `first` is greater than `last`, there are none. */
  first: bigint;
  last: bigint;
  /**
   * The number of addresses at the beginning of the range that are allocated last, because users choose addresses from this part. Source:
   * KEP-3070, calculateRangeOffset of upstream's ipallocator.
   */
  lowerSize: bigint;
}

/** Excludes the first address of the range, and the broadcast address of an IPv4 range. */
export function serviceRange(range: IpRange): ServiceRange {
  const { family, base } = range;
  const size = sizeOf(range);
  const sixteenth = size / 16n;
  const lowerSize = size <= 16n ? 0n : sixteenth < 16n ? 16n : sixteenth > 256n ? 256n : sixteenth;
  return { ...range, first: base + 1n, last: base + size - (family === 'IPv4' ? 2n : 1n), lowerSize };
}

const PREFIXES = { IPv4: [8, 28], IPv6: [64, 124] } as const;

/**
 * Parses one range, or two ranges of different families with a comma between them. The family of the first range is the default. Throws an
 * Error if a range is neither an IPv4 network from /8 to /28 nor an IPv6 network from /64 to /124, or if two ranges have the same family.
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

/** The addresses at these offsets are allocated only on request: the Services `kubernetes` (1) and `kube-dns` (10) use them. */
export const RESERVED_OFFSETS: ReadonlySet<bigint> = new Set([1n, 10n]);

export const kubernetesServiceAddress = (cidrs: string): string => kubernetesServiceAddresses(cidrs)[0];

export const kubernetesServiceAddresses = (cidrs: string): [string, ...string[]] => addressesAt(cidrs, 1n);

/** Returns the conventional cluster IP of the DNS Service, at offset 10 of the first range. */
export const dnsServiceAddress = (cidrs: string): string => addressesAt(cidrs, 10n)[0];

export const serviceCidrsOf = (cidrs: string): string[] => parseServiceCidrs(cidrs).map(formatIpRange);
