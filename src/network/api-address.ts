/**
 * The addresses of the API. No rule for Services or host ports may redirect or reject connections to them: an administrator needs the API
 * to repair a faulty rule.
 */
import { FAMILIES, familyOf, NFT_WORDS } from './families.ts';

export interface ApiAddresses {
  /** 0.0.0.0 stands for all IPv4 addresses of the machine, :: for all addresses of both families. */
  ips: readonly string[];
  port: number;
}

/** Returns conditions in the syntax of nft(8). A packet to the API meets one of them; no other packet does. */
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
