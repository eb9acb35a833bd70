/**
 * The section `pods` of the instance's nftables table: which packets may leave a Pod, and which are masqueraded.
 *
 * - A Pod sends packets only from its own addresses. Otherwise it could evade network policies, or reach programs on loopback addresses of
 *   the node: the interfaces of Pods have `route_localnet`, so that the node reaches host ports on 127.0.0.1. The filter precedes
 *   connection tracking, where replies to such connections still have the gateway as their destination. The kernel itself drops IPv6
 *   packets to and from ::1.
 * - Packets with a source address of the Pod range enter only through the interfaces of Pods. Otherwise a neighbor of the machine could use
 *   the address of a Pod that network policies allow. The machine itself uses its addresses in the range on the interface `lo`.
 * - Packets that a Pod sends to itself through a Service or a host port, and those from loopback addresses of the node, get the address of
 *   the node, because a Pod would drop them or could not answer.
 * - An address of the Pod range that no Pod has is unreachable; without the rule, a sender would wait for the kernel to give up.
 * - Only Pods and the machine itself reach the API at the node's address in the Pod range. Otherwise a neighbor of the machine could route
 *   packets to this address, or to the cluster IP that is translated to it, to the machine. Pods in networks of a runtime that lifepod did
 *   not start are recognized by their addresses: a neighbor that uses such an address gets no reply.
 * - The same holds for the cluster DNS: its answers show which Services and Pods exist, and it would resolve any name for a neighbor.
 */
import { type IpFamily, type IpRange, parseIp, parseIpRange, rangeContains } from '../../machinery/ip.ts';
import { type ApiAddresses, toApi } from '../api-address.ts';
import { familyOf, NFT_WORDS } from '../families.ts';
import type { Part, Section } from '../nftables/section.ts';
import type { Attachment } from './attachments.ts';

export interface PodRange {
  family: IpFamily;
  /** In CIDR notation. */
  cidr: string;
}

export const POD_INTERFACES = 'pods/interfaces';

/** The set of the IPv4 addresses of the sandboxes of all CNI networks. The set exists only if `hasForeignPods` is true. */
const FOREIGN_ADDRESSES = 'pods/foreign-addresses-ip';

const addressesSet = (family: IpFamily): string => `pods/addresses-${NFT_WORDS[family].ip}`;

export interface PodRuleOptions {
  bridge: string;
  ranges: readonly PodRange[];
  /** The IPv4 cluster IPs that the machine itself has. The cluster DNS listens on one of them. */
  serviceIps: readonly string[];
  /** Absent until the port of the API is known. */
  api?: ApiAddresses;
  /** Whether Pods may be in CNI networks of a runtime that lifepod did not start. */
  hasForeignPods?: boolean;
}

export function podRules({ bridge, ranges, serviceIps, api, hasForeignPods = false }: PodRuleOptions): Part {
  const families = ranges.map(({ family }) => family);
  const unreachable = ranges.map(
    ({ family, cidr }) =>
      `oifname "${bridge}" ${NFT_WORDS[family].ip} daddr ${cidr} reject with icmpx host-unreachable`,
  );
  const foreign = ranges.map(({ family, cidr }) => `iifname != "lo" ${NFT_WORDS[family].ip} saddr ${cidr} drop`);
  return {
    sets: [
      { name: POD_INTERFACES, kind: 'set', type: 'ifname' },
      ...(hasForeignPods ? [{ name: FOREIGN_ADDRESSES, kind: 'set' as const, type: NFT_WORDS.IPv4.type }] : []),
      ...families.map((family) => ({
        name: addressesSet(family),
        kind: 'set' as const,
        type: `ifname . ${NFT_WORDS[family].type}`,
      })),
    ],
    chains: [
      {
        name: 'pods/prerouting',
        base: 'type filter hook prerouting priority raw; policy accept;',
        rules: [`iifname @${POD_INTERFACES} goto pods/from-pod`, ...foreign],
      },
      {
        name: 'pods/from-pod',
        rules: [
          'ip daddr 127.0.0.0/8 drop',
          ...families.map((family) => `iifname . ${NFT_WORDS[family].ip} saddr @${addressesSet(family)} accept`),
          ...(families.includes('IPv6')
            ? ['ip6 saddr { ::, fe80::/10 } icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept']
            : []),
          'drop',
        ],
      },
      {
        name: 'pods/postrouting',
        base: 'type nat hook postrouting priority srcnat; policy accept;',
        rules: [
          ...families.map((family) => `oifname . ${NFT_WORDS[family].ip} saddr @${addressesSet(family)} masquerade`),
          `ip saddr 127.0.0.0/8 oifname @${POD_INTERFACES} masquerade`,
          ...ranges.map(({ family, cidr }) => {
            const { ip } = NFT_WORDS[family];
            return `${ip} saddr ${cidr} ${ip} daddr != ${cidr} masquerade`;
          }),
        ],
      },
      { name: 'pods/forward', base: 'type filter hook forward priority filter; policy accept;', rules: unreachable },
      {
        name: 'pods/output',
        base: 'type filter hook output priority filter; policy accept;',
        // A packet to a cluster IP still has the bridge as its interface here, although it is routed to the Pod later.
        rules: ['ct status dnat accept', ...unreachable],
      },
      {
        name: 'pods/input',
        base: 'type filter hook input priority filter; policy accept;',
        rules: [...toDns(serviceIps), ...(api === undefined ? [] : toApiOfPods(ranges, api))].map(
          (condition) => `${stranger(hasForeignPods)} ${condition} drop`,
        ),
      },
    ],
  };
}

const stranger = (hasForeignPods: boolean): string =>
  `iifname != "lo" iifname != @${POD_INTERFACES}${hasForeignPods ? ` ip saddr != @${FOREIGN_ADDRESSES}` : ''}`;

const toDns = (serviceIps: readonly string[]): string[] =>
  serviceIps.length === 0 ? [] : [`ip daddr { ${serviceIps.join(', ')} } meta l4proto { tcp, udp } th dport 53`];

function toApiOfPods(ranges: readonly PodRange[], { ips, port }: ApiAddresses): string[] {
  const own = ips.filter((text) => {
    const ip = parseIp(text);
    return ip !== undefined && ranges.some(({ cidr }) => rangeContains(parseIpRange(cidr) as IpRange, ip));
  });
  return toApi({ ips: own, port });
}

/** Returns the elements for an attached sandbox. Addresses of families without a Pod range are left out. */
export function podElements({ link, addresses }: Attachment, ranges: readonly PodRange[]): Part {
  return {
    elements: [
      { set: POD_INTERFACES, values: new Map([[quoted(link), '']]) },
      ...ranges.map(({ family }) => ({
        set: addressesSet(family),
        values: new Map(
          addresses
            .filter((address) => familyOf(address) === family)
            .map((address) => [`${quoted(link)} . ${address}`, '']),
        ),
      })),
    ],
  };
}

const quoted = (link: string): string => `"${link}"`;

/** Returns the elements for sandboxes in CNI networks of another runtime. IPv6 addresses are left out. */
export function foreignElements(addresses: readonly string[]): Part {
  const ipv4 = addresses.filter((address) => familyOf(address) === 'IPv4');
  return { elements: [{ set: FOREIGN_ADDRESSES, values: new Map(ipv4.map((address) => [address, ''])) }] };
}

/**
 * Returns the section for the attachments. `foreign`: the result of foreignElements(). `elementsOf`: returns podElements() of an
 * attachment, always the same object for the same attachment.
 */
export function podSection(
  rules: Part,
  foreign: Part,
  attachments: ReadonlyMap<string, Attachment>,
  elementsOf: (of: Attachment) => Part,
): Section {
  const pods = [...attachments].map(([name, of]) => [name, elementsOf(of)] as const);
  return new Map([['rules', rules], ['foreign', foreign], ...pods]);
}
