/**
 * Parses, formats and compares IPv4 and IPv6 addresses, and ranges of them in CIDR notation.
 *
 * An address has one canonical text: dotted decimals for IPv4, RFC 5952 for IPv6. Zones, and leading zeros in IPv4 addresses and prefix
 * lengths, are not accepted, because programs interpret them differently. IPv4-mapped IPv6 addresses (::ffff:192.0.2.1) are IPv6 addresses
 * here; isMapped() finds them.
 */
import { isIP } from 'node:net';

export type IpFamily = 'IPv4' | 'IPv6';

export interface IpAddress {
  family: IpFamily;
  /** An unsigned number of 32 or 128 bits. */
  value: bigint;
}

export interface IpRange {
  family: IpFamily;
  /** The first address of the range. */
  base: bigint;
  prefixLength: number;
}

/** The length of an address in bits. */
export const bitsOf = (family: IpFamily): number => (family === 'IPv4' ? 32 : 128);

/** Returns undefined if the text is not an address. */
export function parseIp(text: string): IpAddress | undefined {
  switch (text.includes('%') ? 0 : isIP(text)) {
    case 4:
      return { family: 'IPv4', value: numberOf(text.split('.'), 10, 8n) };
    case 6:
      return { family: 'IPv6', value: numberOf(groupsOf(text), 16, 16n) };
    default:
      return undefined;
  }
}

const numberOf = (digits: readonly string[], base: 10 | 16, bits: bigint): bigint =>
  digits.reduce((sum, each) => (sum << bits) | BigInt(Number.parseInt(each, base)), 0n);

function groupsOf(text: string): string[] {
  const hexadecimal = text.replace(/[\d.]+$/, (tail) => {
    if (!tail.includes('.')) return tail;
    const [a = 0, b = 0, c = 0, d = 0] = tail.split('.').map(Number);
    return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
  });
  const [head = '', tail] = hexadecimal.split('::').map((part) => (part === '' ? [] : part.split(':')));
  if (tail === undefined) return [...head];
  return [...head, ...Array<string>(8 - head.length - tail.length).fill('0'), ...tail];
}

export function formatIp({ family, value }: IpAddress): string {
  const groups = (count: number, bits: bigint): number[] =>
    Array.from({ length: count }, (_, index) =>
      Number((value >> (bits * BigInt(count - 1 - index))) & ((1n << bits) - 1n)),
    );
  if (family === 'IPv4') return groups(4, 8n).join('.');
  if (isMapped({ family, value })) return `::ffff:${formatIp({ family: 'IPv4', value: value & 0xffff_ffffn })}`;
  const all = groups(8, 16n);
  const zeros = longestZeros(all);
  const text = (part: readonly number[]): string => part.map((group) => group.toString(16)).join(':');
  return zeros === undefined ? text(all) : `${text(all.slice(0, zeros.start))}::${text(all.slice(zeros.end))}`;
}

/** Returns the first of the longest runs of two or more zeros; undefined if there is none. */
function longestZeros(groups: readonly number[]): { start: number; end: number } | undefined {
  let longest = { start: 0, end: 1 };
  for (let start = 0; start < groups.length; start++) {
    let end = start;
    while (groups[end] === 0) end++;
    if (end - start > longest.end - longest.start) longest = { start, end };
    start = Math.max(start, end);
  }
  return longest.end - longest.start > 1 ? longest : undefined;
}

/** Whether this is an IPv4-mapped IPv6 address. */
export const isMapped = ({ family, value }: IpAddress): boolean => family === 'IPv6' && value >> 32n === 0xffffn;

export function canonicalIp(text: string): string | undefined {
  const ip = parseIp(text);
  return ip === undefined ? undefined : formatIp(ip);
}

/**
 * Parses CIDR notation, such as 10.96.0.0/16 or fd00::/112; undefined if the text is not a range. `hasHostBits`: whether the text has bits
 * set after the prefix, which the returned range does not have.
 */
export function parseIpRange(text: string): (IpRange & { hasHostBits: boolean }) | undefined {
  const [, address = '', length = ''] = /^([^/]*)\/(0|[1-9]\d{0,2})$/.exec(text) ?? [];
  const ip = parseIp(address);
  const prefixLength = Number(length);
  if (ip === undefined || prefixLength > bitsOf(ip.family)) return undefined;
  const base = ip.value & ~(sizeOf({ ...ip, prefixLength }) - 1n);
  return { family: ip.family, base, prefixLength, hasHostBits: base !== ip.value };
}

export const sizeOf = ({ family, prefixLength }: Pick<IpRange, 'family' | 'prefixLength'>): bigint =>
  1n << BigInt(bitsOf(family) - prefixLength);

export const formatIpRange = ({ family, base, prefixLength }: IpRange): string =>
  `${formatIp({ family, value: base })}/${prefixLength}`;

export const rangeContains = (range: IpRange, { family, value }: IpAddress): boolean =>
  family === range.family && value >= range.base && value < range.base + sizeOf(range);

/** Equal ranges contain each other. */
export const rangeContainsRange = (outer: IpRange, inner: IpRange): boolean =>
  inner.prefixLength >= outer.prefixLength && rangeContains(outer, { family: inner.family, value: inner.base });

export const rangesOverlap = (a: IpRange, b: IpRange): boolean => rangeContainsRange(a, b) || rangeContainsRange(b, a);

const VALID_IP = 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)';
const VALID_RANGE = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)';

/**
 * Accepts only canonical addresses that are not IPv4-mapped. Source: IsValidIP of k8s.io/apimachinery/pkg/util/validation of v1.33
 * (behavior and wording).
 */
export function canonicalIpErrors(text: string): string[] {
  const ip = parseIp(text);
  if (ip === undefined) return [VALID_IP];
  if (isMapped(ip)) return ['must not be an IPv4-mapped IPv6 address'];
  const canonical = formatIp(ip);
  return text === canonical ? [] : [`must be in canonical form (${JSON.stringify(canonical)})`];
}

/**
 * Accepts only canonical ranges that have no bits set after the prefix and are not IPv4-mapped. Source: IsValidCIDR of
 * k8s.io/apimachinery/pkg/util/validation of v1.33 (behavior and wording).
 */
export function canonicalRangeErrors(text: string): string[] {
  const range = parseIpRange(text);
  if (range === undefined) return [VALID_RANGE];
  if (isMapped({ family: range.family, value: range.base })) return ['must not have an IPv4-mapped IPv6 address'];
  if (range.hasHostBits) return ['must not have bits set beyond the prefix length'];
  const canonical = formatIpRange(range);
  return text === canonical ? [] : [`must be in canonical form (${JSON.stringify(canonical)})`];
}

/**
 * For fields that are older than the strict rules: the text need not be canonical, and may have bits set after the prefix. Rejects
 * IPv4-mapped IPv6 addresses, and leading zeros in IPv4 addresses and in the prefix length, as v1.33 does with its feature gate
 * StrictIPCIDRValidation.
 */
export function rangeErrors(text: string): string[] {
  const range = parseIpRange(text);
  if (range === undefined) return [VALID_RANGE];
  return isMapped({ family: range.family, value: range.base }) ? ['must not have an IPv4-mapped IPv6 address'] : [];
}

/** For fields that are older than the strict rules: accepts and rejects the same forms of addresses as rangeErrors(). */
export function addressErrors(text: string): string[] {
  const ip = parseIp(text);
  if (ip === undefined) return [VALID_IP];
  return isMapped(ip) ? ['must not be an IPv4-mapped IPv6 address'] : [];
}

/** Warns of a valid address that is not canonical. Source: GetWarningsForIP of v1.33 (behavior and wording). */
export function addressWarnings(field: string, text: string): string[] {
  const canonical = canonicalIp(text);
  if (canonical === undefined || canonical === text) return [];
  return [
    `${field}: IPv6 address ${JSON.stringify(text)} should be in RFC 5952 canonical format (${JSON.stringify(canonical)})`,
  ];
}

/** Warns of a valid range that is ambiguous or not canonical. Source: GetWarningsForCIDR of v1.33 (behavior and wording). */
export function rangeWarnings(field: string, text: string): string[] {
  const range = parseIpRange(text);
  if (range === undefined) return [];
  const shown = JSON.stringify(text);
  const canonical = JSON.stringify(formatIpRange(range));
  if (range.hasHostBits) {
    const single = JSON.stringify(`${canonicalIp(text.slice(0, text.indexOf('/')))}/${bitsOf(range.family)}`);
    return [`${field}: CIDR value ${shown} is ambiguous in this context (should be ${canonical} or ${single}?)`];
  }
  if (shown === canonical) return [];
  return [`${field}: IPv6 CIDR value ${shown} should be in RFC 5952 canonical format (${canonical})`];
}
