/**
 * The section `pods` of the instance's nftables table: which packets may leave a Pod, and which are masqueraded.
 *
 * - A Pod sends packets only from its own addresses. Otherwise it could evade network policies, or reach programs that listen only on
 *   loopback addresses of the node: the interfaces of Pods have `route_localnet`, so that the node reaches host ports on 127.0.0.1.
 *   The filter precedes connection tracking, where replies to such connections still have the gateway as their destination.
 *   The kernel itself drops IPv6 packets to and from ::1.
 * - Packets with a source address of the Pod range enter only through the interfaces of Pods. Otherwise a neighbor of the machine could
 *   use the address of a Pod that network policies allow. The machine itself uses its addresses in the range on the interface `lo`.
 * - Packets that a Pod sends to itself through a Service or a host port, and those from loopback addresses of the node, get the address of
 *   the node, because a Pod would drop them or could not answer.
 * - An address of the Pod range that no Pod has is unreachable; without the rule, a sender would wait for the kernel to give up.
 */
import type { IpFamily } from '../../machinery/ip.ts';
import { familyOf, NFT_WORDS } from '../families.ts';
import type { Part, Section } from '../nftables/section.ts';
import type { Attachment } from './attachments.ts';

export interface PodRange {
  family: IpFamily;
  /** In CIDR notation. */
  cidr: string;
}

/** The interfaces that are connected to Pods. */
export const POD_INTERFACES = 'pods/interfaces';

const addressesSet = (family: IpFamily): string => `pods/addresses-${NFT_WORDS[family].ip}`;

/** `bridge`: the interface to which packets for addresses of the Pod ranges are routed that no Pod has. */
export function podRules(bridge: string, ranges: readonly PodRange[]): Part {
  const families = ranges.map(({ family }) => family);
  const unreachable = ranges.map(
    ({ family, cidr }) =>
      `oifname "${bridge}" ${NFT_WORDS[family].ip} daddr ${cidr} reject with icmpx host-unreachable`,
  );
  const foreign = ranges.map(({ family, cidr }) => `iifname != "lo" ${NFT_WORDS[family].ip} saddr ${cidr} drop`);
  return {
    sets: [
      { name: POD_INTERFACES, kind: 'set', type: 'ifname' },
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
      { name: 'pods/output', base: 'type filter hook output priority filter; policy accept;', rules: unreachable },
    ],
  };
}

/** The elements for one Pod. Addresses of families without a Pod range are left out. */
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

/** Returns the section for the attachments. `elementsOf`: podElements() of an attachment, the same object for the same attachment. */
export function podSection(
  rules: Part,
  attachments: ReadonlyMap<string, Attachment>,
  elementsOf: (of: Attachment) => Part,
): Section {
  return new Map([['rules', rules], ...[...attachments].map(([name, of]) => [name, elementsOf(of)] as const)]);
}
