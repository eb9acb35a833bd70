/**
 * The section `host-ports` of the instance's nftables table: packets to a host port of a Pod get the Pod's address. A host port is open on
 * all addresses of the node, or only on its hostIP. ::1 is not included, because the kernel does not route it. If several Pods have the
 * same host port, because one of them is ending, the port belongs to the Pod that had it first. The priority -98 follows the chains of
 * Services at -100 and -99: the order of chains with the same priority depends on which was created last.
 */
import { canonicalIp, type IpFamily } from '../../machinery/ip.ts';
import { type ApiAddresses, toApi } from '../api-address.ts';
import { familyOf, NFT_WORDS } from '../families.ts';
import type { Part, Section } from '../nftables/section.ts';
import type { UdpFrontend } from '../proxy/service-rules.ts';
import type { Attachment, HostPort } from './attachments.ts';
import type { PodRange } from './rules.ts';

const PROTOCOLS = 'meta l4proto { tcp, udp, sctp }';

/** The keys of this map are the host ports on all addresses, such as `tcp . 80`. */
export const hostPortMap = (family: IpFamily): string => `host-ports/ports-${NFT_WORDS[family].ip}`;
const addressMapOf = (family: IpFamily): string => `host-ports/address-ports-${NFT_WORDS[family].ip}`;

/**
 * Returns the part with the maps of host ports and the chains that look them up. `serviceIps`: the cluster IPs of the node itself, which
 * have no host ports. `api`: the addresses of the API; no host port gets connections to them. Undefined until the port of the API is known.
 */
export function hostPortRules(
  ranges: readonly PodRange[],
  serviceIps: readonly string[],
  api: ApiAddresses | undefined,
): Part {
  const exceptions = [
    ...(api === undefined ? [] : toApi(api).map((condition) => `${condition} accept`)),
    ...serviceIps.map((ip) => `${NFT_WORDS[familyOf(ip)].ip} daddr ${ip} accept`),
  ];
  const toLocal = [...exceptions, `fib daddr type local ${PROTOCOLS} goto host-ports/to-pod`];
  return {
    sets: ranges.flatMap(({ family }) => {
      const { type } = NFT_WORDS[family];
      const port = 'inet_proto . inet_service';
      const to = `${type} . inet_service`;
      return [
        { name: hostPortMap(family), kind: 'map' as const, type: `${port} : ${to}` },
        { name: addressMapOf(family), kind: 'map' as const, type: `${type} . ${port} : ${to}` },
      ];
    }),
    chains: [
      {
        name: 'host-ports/to-pod',
        rules: ranges.flatMap(({ family }) => {
          const { ip } = NFT_WORDS[family];
          return [
            `dnat ${ip} to ${ip} daddr . meta l4proto . th dport map @${addressMapOf(family)}`,
            `dnat ${ip} to meta l4proto . th dport map @${hostPortMap(family)}`,
          ];
        }),
      },
      {
        name: 'host-ports/prerouting',
        base: 'type nat hook prerouting priority -98; policy accept;',
        rules: toLocal,
      },
      { name: 'host-ports/output', base: 'type nat hook output priority -98; policy accept;', rules: toLocal },
    ],
  };
}

interface Entry {
  map: string;
  key: string;
  value: string;
}

function entriesOf({ addresses, hostPorts }: Attachment, ranges: readonly PodRange[]): Entry[] {
  return addresses.flatMap((address) => {
    const family = familyOf(address);
    if (!ranges.some((range) => range.family === family)) return [];
    return hostPorts.flatMap((port) => {
      const key = keyOf(port, family);
      return key === undefined ? [] : [{ ...key, value: `${address} . ${port.containerPort}` }];
    });
  });
}

function keyOf({ protocol, hostPort, hostIp }: HostPort, family: IpFamily): Pick<Entry, 'map' | 'key'> | undefined {
  const port = `${protocol} . ${hostPort}`;
  if (hostIp !== undefined && familyOf(hostIp) !== family) return undefined;
  if (hostIp === undefined || hostIp === NFT_WORDS[family].anyAddress) return { map: hostPortMap(family), key: port };
  return { map: addressMapOf(family), key: `${hostIp} . ${port}` };
}

/** Returns the section for the attachments, the oldest first. `previous`: the last section, whose parts are used again if unchanged. */
export function hostPortSection(
  rules: Part,
  ranges: readonly PodRange[],
  attachments: ReadonlyMap<string, Attachment>,
  previous: Section,
): Section {
  const section = new Map([['rules', rules]]);
  const taken = new Set<string>();
  for (const [name, attachment] of attachments) {
    if (attachment.hostPorts.length === 0) continue;
    const values = new Map<string, Map<string, string>>();
    for (const { map, key, value } of entriesOf(attachment, ranges)) {
      if (taken.has(`${map} ${key}`)) continue;
      taken.add(`${map} ${key}`);
      values.set(map, (values.get(map) ?? new Map()).set(key, value));
    }
    const part = { elements: [...values].map(([set, elements]) => ({ set, values: elements })) };
    const old = previous.get(name);
    section.set(name, old !== undefined && sameElements(old, part) ? old : part);
  }
  return section;
}

/** Returns the UDP host ports of a section, with the Pod that each leads to. */
export function udpFrontendsIn(section: Section): UdpFrontend[] {
  return [...section.values()].flatMap(({ elements = [] }) =>
    elements.flatMap(({ values }) =>
      [...values].flatMap(([key, target]): UdpFrontend[] => {
        const [port, protocol, address] = key.split(' . ').reverse();
        if (protocol !== 'udp') return [];
        const family = familyOf(target.split(' . ')[0] ?? '');
        return [{ address: address && canonicalIp(address), family, port: Number(port), targets: new Set([target]) }];
      }),
    ),
  );
}

function sameElements(a: Part, b: Part): boolean {
  const text = ({ elements = [] }: Part): string =>
    JSON.stringify(elements.map(({ set, values }) => [set, [...values]]));
  return text(a) === text(b);
}
