/**
 * Defines the addresses of the API. No rule for Services or host ports may redirect or reject connections to them: otherwise, an
 * administrator could not use the API to repair the cause.
 */
import { FAMILIES, familyOf, NFT_WORDS } from './families.ts';

export interface ApiAddresses {
  /** An unspecified address stands for all addresses of the machine: 0.0.0.0 for those of IPv4, :: for those of both families. */
  ips: readonly string[];
  /** The TCP port. */
  port: number;
}

/** Returns conditions in the syntax of nft(8): every packet to the API meets one of them, and no other packet meets any. */
export function toApi({ ips, port }: ApiAddresses): string[] {
  const local = `fib daddr type local tcp dport ${port}`;
  if (ips.includes(NFT_WORDS.IPv6.anyAddress)) return [local];
  return FAMILIES.flatMap((family) => {
    const { ip, anyAddress } = NFT_WORDS[family];
    const own = ips.filter((each) => familyOf(each) === family);
    if (own.includes(anyAddress)) return [`meta nfproto ipv4 ${local}`];
    return own.length === 0 ? [] : [`${ip} daddr { ${own.join(', ')} } tcp dport ${port}`];
  });
}
