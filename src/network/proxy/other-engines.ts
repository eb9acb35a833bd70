/** Finds ports of the machine that several engines have (node ports and host ports), and the Service ranges of other engines. */
import { type IpFamily, type IpRange, parseIp, rangesOverlap, sizeOf } from '../../machinery/ip.ts';
import { FAMILIES, NFT_WORDS } from '../families.ts';
import { listOtherEngines, nft, type TableOptions } from '../nftables/nft.ts';
import { hostPortMap } from '../pod-network/host-ports.ts';
import { printedRange } from '../pod-network/ranges.ts';
import { NAMES, UNKNOWN_ADDRESSES } from './base-rules.ts';

const KEY = /\b(\w+ \. \d+) :/g;

/**
 * Resolves with the ports of a family, such as `tcp . 30080`, that are node ports or host ports in the table; none if nft(8) cannot list
 * these maps, for example because there is no such table.
 */
export async function portsIn(options: TableOptions, family: IpFamily): Promise<Set<string>> {
  const { number } = NFT_WORDS[family];
  const maps = [`${NAMES.unservedNodePorts}-${number}`, `${NAMES.nodePorts}-${number}`, hostPortMap(family)];
  const listed = await Promise.all(
    // A map is missing while the engine starts or ends, or if it has no addresses of the family.
    maps.map((map) => nft(options, ['list', 'map', 'inet', options.name, map]).catch(() => '')),
  );
  return new Set(listed.flatMap((text) => [...text.matchAll(KEY)].map(([, port = '']) => port)));
}

/**
 * Resolves with a message for each node port and host port that the table shares with the table of another engine, sorted. Rejects if
 * nft(8) cannot list the tables. The ports of load balancers are not examined.
 */
export async function sharedPorts(options: TableOptions): Promise<string[]> {
  const messages = new Set<string>();
  for (const table of await listOtherEngines(options)) {
    for (const family of FAMILIES) {
      const [own, others] = await Promise.all([portsIn(options, family), portsIn({ ...options, name: table }, family)]);
      for (const port of own) if (others.has(port)) messages.add(sharedPort(`port ${portText(port)}`, table));
    }
  }
  return [...messages].sort();
}

/** Converts `tcp . 30080`, the spelling of nft(8), to `TCP/30080`. */
export function portText(port: string): string {
  const [protocol = '', number] = port.split(' . ');
  return `${protocol.toUpperCase()}/${number}`;
}

/**
 * Returns the message about a port that another engine has as well. `port`: such as `node port TCP/30080`. `table`: the table of the other
 * engine.
 */
export const sharedPort = (port: string, table: string): string =>
  `another engine of lifepod on this machine, with the nftables table ${table}, also has the ${port}: ` +
  'only one of them gets the connections, usually the one that was started last; use another port for one of them';

/** Matches the Service ranges in the output of nft(8), which prints a single range without braces. */
const DROPPED_RANGES = /^\s*ip6? daddr (?:\{ )?([\da-f.:/, -]+?)(?: \})? fib daddr type != local drop$/gm;

export interface ServiceRange {
  table: string;
  /** In CIDR notation, or the first and the last address of adjacent ranges, as nft(8) prints them. */
  text: string;
  overlaps(other: IpRange): boolean;
}

/**
 * Resolves with the Service ranges of other engines, even of engines that have been killed. The rules of an engine show all its ranges,
 * because they drop packets to unused addresses. The routes do not suffice: an older engine has none.
 */
export async function otherServiceRanges(options: TableOptions): Promise<ServiceRange[]> {
  const found: ServiceRange[] = [];
  for (const table of await listOtherEngines(options)) {
    // The chain is missing while the engine starts or ends.
    const text = await nft(options, ['list', 'chain', 'inet', table, UNKNOWN_ADDRESSES]).catch(() => '');
    found.push(...serviceRangesIn(table, text));
  }
  return found;
}

/** Returns the Service ranges in the rules of an engine. `chain`: the chain UNKNOWN_ADDRESSES in the output of nft(8). */
export const serviceRangesIn = (table: string, chain: string): ServiceRange[] =>
  [...chain.matchAll(DROPPED_RANGES)]
    .flatMap(([, listed = '']) => listed.split(', '))
    .flatMap((each) => serviceRange(table, each) ?? []);

function serviceRange(table: string, text: string): ServiceRange | undefined {
  const range = printedRange(text);
  if (range !== undefined) return { table, text, overlaps: (other) => rangesOverlap(range, other) };
  const [first, last] = text.split('-').map(parseIp);
  if (first === undefined || last === undefined) return undefined;
  const overlaps = (other: IpRange): boolean =>
    other.family === first.family && other.base <= last.value && other.base + sizeOf(other) > first.value;
  return { table, text, overlaps };
}
