/**
 * The rules of the section `services` that do not depend on Services: the chains at the hooks of the kernel, and the maps that they look
 * up.
 *
 * A packet that begins a connection is looked up by destination address, protocol and port, in prerouting and output, before the routing
 * decision. The element leads to a chain that chooses an endpoint and translates the destination. Connection tracking translates all other
 * packets. A packet that no endpoint gets reaches the filter chains with its original destination: there it is rejected or dropped.
 *
 * During a transaction, a packet may find no usable element: the kernel chooses between the old and the new rules when the packet enters a
 * base chain, but between the old and the new elements at each lookup. Thus an element may lead to a chain or a slot that the rules of this
 * packet do not have. Therefore the packet is looked up again, in a base chain of its own.
 *
 * Source: the nftables mode of kube-proxy v1.33 (KEP-3866). Unlike there, all addresses of the node accept node ports.
 */

import { formatIpRange, type IpRange, parseIpRange, rangeContainsRange } from '../../machinery/ip.ts';
import { type ApiAddresses, toApi } from '../api-address.ts';
import { FAMILIES, familyOf, NFT_WORDS } from '../families.ts';
import type { Chain, NftSet, Part } from '../nftables/section.ts';

/** The maps exist once for each family, with 4 or 6 at the end of the name. */
export const NAMES = {
  /** Map from frontends with an address to the chain that chooses an endpoint. */
  addresses: 'services/addresses',
  nodePorts: 'services/node-ports',
  /** Map from frontends that no endpoint serves to `reject` or `drop`. */
  unservedAddresses: 'services/unserved-addresses',
  unservedNodePorts: 'services/unserved-node-ports',
  /** Map from addresses of Services with loadBalancerSourceRanges to the chain that drops other sources. */
  restricted: 'services/restricted',
  clusterIps: 'services/cluster-ips',
  reject: 'services/reject',
} as const;

/** The chain rejects or drops packets to unused cluster IPs. */
export const UNKNOWN_ADDRESSES = 'services/unknown';

/**
 * The bit of the packet mark that means that the packet must leave with the address of the node. kube-proxy uses 0x4000 and 0x8000, the CNI
 * plugin portmap 0x2000.
 */
const MASQUERADE_BIT = 0x1000;
export const MARK = `meta mark set meta mark | 0x${MASQUERADE_BIT.toString(16)}`;
const UNMARK = `meta mark set meta mark & 0x${(0xffffffff - MASQUERADE_BIT).toString(16)}`;

export interface BaseOptions {
  /** The ranges of cluster IPs, in CIDR notation. An address in them has no node ports, even if the machine has it. */
  serviceCidrs: readonly string[];
  /** The addresses of the API. No Service gets packets to them, even if it claims these addresses and this port. */
  api: ApiAddresses;
}

export function baseRules(options: BaseOptions): Part {
  return { sets: FAMILIES.flatMap(mapsOf), chains: [...natChains(options), ...filterChains(options)] };
}

function mapsOf(family: (typeof FAMILIES)[number]): NftSet[] {
  const { type, number } = NFT_WORDS[family];
  const map = (name: string, key: string): NftSet => ({
    name: `${name}-${number}`,
    kind: 'map',
    type: `${key} : verdict`,
  });
  const port = 'inet_proto . inet_service';
  return [
    map(NAMES.addresses, `${type} . ${port}`),
    map(NAMES.nodePorts, port),
    map(NAMES.unservedAddresses, `${type} . ${port}`),
    map(NAMES.unservedNodePorts, port),
    map(NAMES.restricted, `${type} . ${port}`),
    { name: `${NAMES.clusterIps}-${number}`, kind: 'set', type },
  ];
}

const lookUp = (map: string): string[] =>
  FAMILIES.map((family) => {
    const { ip, number } = NFT_WORDS[family];
    return `${ip} daddr . meta l4proto . th dport vmap @${map}-${number}`;
  });

/** ::1 has no node ports, because the kernel does not route packets from ::1 to Pods. */
const lookUpNodePort = (map: string): string[] =>
  FAMILIES.map((family) => {
    const { ip, number } = NFT_WORDS[family];
    const condition = family === 'IPv4' ? 'meta nfproto ipv4' : `${ip} daddr != ::1`;
    return `${condition} fib daddr type local meta l4proto . th dport vmap @${map}-${number}`;
  });

const exceptApi = (api: ApiAddresses): string[] => toApi(api).map((condition) => `${condition} return`);

function natChains({ serviceCidrs, api }: BaseOptions): Chain[] {
  const clusterIps = FAMILIES.flatMap((family) => {
    const ranges = ofFamily(serviceCidrs, family);
    return ranges.length === 0 ? [] : [`${NFT_WORDS[family].ip} daddr { ${ranges.join(', ')} } return`];
  });
  return [
    {
      name: 'services/translate',
      rules: [...exceptApi(api), ...lookUp(NAMES.addresses), ...clusterIps, ...lookUpNodePort(NAMES.nodePorts)],
    },
    // The priority is a number, because nft(8) knows its name dstnat only for prerouting.
    ...(['prerouting', 'output'] as const).flatMap((hook) => [
      base(`services/${hook}`, `nat hook ${hook} priority -100`, ['jump services/translate']),
      base(`services/${hook}-again`, `nat hook ${hook} priority -99`, ['jump services/translate']),
    ]),
    base('services/postrouting', 'nat hook postrouting priority srcnat', [
      `meta mark & 0x${MASQUERADE_BIT.toString(16)} != 0 ${UNMARK} masquerade fully-random`,
    ]),
  ];
}

function filterChains({ serviceCidrs, api }: BaseOptions): Chain[] {
  const unknown = FAMILIES.flatMap((family) => {
    const { ip, number } = NFT_WORDS[family];
    const ranges = ofFamily(outermost(serviceCidrs), family);
    return [
      `${ip} daddr @${NAMES.clusterIps}-${number} fib daddr type != local goto ${NAMES.reject}`,
      ...(ranges.length === 0 ? [] : [`${ip} daddr { ${ranges.join(', ')} } fib daddr type != local drop`]),
    ];
  });
  const restricted = ['ct state new jump services/restrict'];
  const filtered = ['ct state new jump services/unserved'];
  const all = [...filtered, `ct state new jump ${UNKNOWN_ADDRESSES}`];
  return [
    { name: NAMES.reject, rules: ['meta l4proto tcp reject with tcp reset', 'reject with icmpx port-unreachable'] },
    { name: 'services/restrict', rules: [...exceptApi(api), ...lookUp(NAMES.restricted)] },
    {
      name: 'services/unserved',
      rules: [...exceptApi(api), ...lookUp(NAMES.unservedAddresses), ...lookUpNodePort(NAMES.unservedNodePorts)],
    },
    { name: UNKNOWN_ADDRESSES, rules: unknown },
    // The chains `restrict` precede the chains that translate destinations.
    base('services/restrict-prerouting', 'filter hook prerouting priority -110', restricted),
    base('services/restrict-output', 'filter hook output priority -110', restricted),
    base('services/filter-input', 'filter hook input priority filter', filtered),
    base('services/filter-forward', 'filter hook forward priority filter', all),
    base('services/filter-output', 'filter hook output priority filter', all),
  ];
}

const base = (name: string, hook: string, rules: string[]): Chain => ({
  name,
  base: `type ${hook}; policy accept;`,
  rules,
});

export const ofFamily = (texts: readonly string[], family: (typeof FAMILIES)[number]): string[] =>
  texts.filter((text) => familyOf(text) === family);

/** Returns the ranges without those that another range contains, because a set of nftables cannot contain ranges that overlap. */
function outermost(cidrs: readonly string[]): string[] {
  const ranges = cidrs.flatMap((cidr) => parseIpRange(cidr) ?? []);
  ranges.sort((a, b) =>
    a.family === b.family && a.base === b.base
      ? a.prefixLength - b.prefixLength
      : a.family < b.family || (a.family === b.family && a.base < b.base)
        ? -1
        : 1,
  );
  const found: IpRange[] = [];
  for (const range of ranges) {
    const last = found.at(-1);
    // After the sorting, a range follows the ranges that contain it.
    if (last === undefined || !rangeContainsRange(last, range)) found.push(range);
  }
  return found.map(formatIpRange);
}
