/** IPv4 address ranges. Pure. */

export interface Cidr {
  /** First address, as a number. */
  base: number;
  prefixLength: number;
}

/** Throws if the text is not an IPv4 CIDR. Bits after the prefix are cleared. */
export function parseCidr(text: string): Cidr {
  const match = /^(\d{1,3}(?:\.\d{1,3}){3})\/(\d{1,2})$/.exec(text);
  const address = match === null ? undefined : parseIpv4(match[1] as string);
  const prefixLength = Number(match?.[2]);
  if (address === undefined || prefixLength > 32)
    throw new Error(`${JSON.stringify(text)} is not an IPv4 range such as 10.244.0.0/24`);
  const size = 2 ** (32 - prefixLength);
  return { base: Math.floor(address / size) * size, prefixLength };
}

export function parseIpv4(text: string): number | undefined {
  const parts = text.split('.');
  if (parts.length !== 4 || parts.some((part) => !/^\d{1,3}$/.test(part) || Number(part) > 255)) return undefined;
  return parts.reduce((sum, part) => sum * 256 + Number(part), 0);
}

export const formatIpv4 = (address: number): string =>
  [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join('.');

export const formatCidr = (cidr: Cidr): string => `${formatIpv4(cidr.base)}/${cidr.prefixLength}`;

const size = (cidr: Cidr): number => 2 ** (32 - cidr.prefixLength);

export const overlaps = (a: Cidr, b: Cidr): boolean => a.base < b.base + size(b) && b.base < a.base + size(a);
