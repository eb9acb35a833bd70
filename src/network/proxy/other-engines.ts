/** Finds ports of the machine that several engines have: node ports and host ports, which all addresses of the machine have. */
import type { IpFamily } from '../../machinery/ip.ts';
import { FAMILIES, NFT_WORDS } from '../families.ts';
import { listOtherEngines, nft, type TableOptions } from '../nftables/nft.ts';
import { hostPortMap } from '../pod-network/host-ports.ts';
import { NAMES } from './base-rules.ts';

/** A key of a map of ports in the output of nft(8). */
const KEY = /\b(\w+ \. \d+) :/g;

/** Resolves with the ports of a family, such as `tcp . 30080`, that are node ports or host ports in the table; none if there is no such table. */
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
 * Resolves with a message for each node port and host port that the table and that of another engine have, sorted. Rejects if nft(8) cannot
 * list the tables. The ports of load balancers are not examined.
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

/** `port`: a port in the spelling of nft(8). Returns a text such as `TCP/30080`. */
export function portText(port: string): string {
  const [protocol = '', number] = port.split(' . ');
  return `${protocol.toUpperCase()}/${number}`;
}

/** Returns a message with the problem and its solution. `port`: such as `node port TCP/30080`. `table`: that of the other engine. */
export const sharedPort = (port: string, table: string): string =>
  `another engine of lifepod on this machine, with the nftables table ${table}, also has the ${port}: ` +
  'only one of them gets the connections, usually the one that was started last; use another port for one of them';
