import type { IpFamily } from '../machinery/ip.ts';

export const FAMILIES: readonly IpFamily[] = ['IPv4', 'IPv6'];

export const NFT_WORDS: Readonly<Record<IpFamily, { ip: string; type: string; number: number; anyAddress: string }>> = {
  IPv4: { ip: 'ip', type: 'ipv4_addr', number: 4, anyAddress: '0.0.0.0' },
  IPv6: { ip: 'ip6', type: 'ipv6_addr', number: 6, anyAddress: '::' },
};

/** In the spelling of conntrack(8). */
export const CONNTRACK_FAMILY: Readonly<Record<IpFamily, string>> = { IPv4: 'ipv4', IPv6: 'ipv6' };

export const familyOf = (address: string): IpFamily => (address.includes(':') ? 'IPv6' : 'IPv4');
