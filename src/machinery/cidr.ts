/** Parses, formats and compares IPv4 addresses and address ranges. */
import { isIPv4 } from 'node:net';

export interface Cidr {
  /** The first address of the range, as a number from 0 to 2^32-1. */
  base: number;
  prefixLength: number;
}

/** Parses an IPv4 range such as 10.244.0.0/24, and clears the bits after the prefix. Throws if the text is not a range. */
export function parseCidr(text: string): Cidr {
  const cidr = tryParseCidr(text);
  if (cidr === undefined) throw new Error(`${JSON.stringify(text)} is not an IPv4 range such as 10.244.0.0/24`);
  return cidr;
}

/** Like parseCidr(), but returns undefined if the text is not an IPv4 range. */
export function tryParseCidr(text: string): Cidr | undefined {
  const [, network = '', length] = /^([\d.]+)\/(\d{1,2})$/.exec(text) ?? [];
  const address = parseIpv4(network);
  const prefixLength = Number(length);
  if (address === undefined || prefixLength > 32) return undefined;
  const size = 2 ** (32 - prefixLength);
  return { base: Math.floor(address / size) * size, prefixLength };
}

/**
 * Returns the address as a number; undefined if the text is not an IPv4 address. Leading zeros are rejected, because programs
 * interpret them differently.
 */
export const parseIpv4 = (text: string): number | undefined =>
  isIPv4(text) ? text.split('.').reduce((sum, byte) => sum * 256 + Number(byte), 0) : undefined;

export const formatIpv4 = (address: number): string =>
  [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join('.');

export const formatCidr = (cidr: Cidr): string => `${formatIpv4(cidr.base)}/${cidr.prefixLength}`;

const size = (cidr: Cidr): number => 2 ** (32 - cidr.prefixLength);

export const overlaps = (a: Cidr, b: Cidr): boolean => a.base < b.base + size(b) && b.base < a.base + size(a);
