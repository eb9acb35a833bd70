/**
 * Rules for a port of a Service whose clients keep their endpoint (session affinity). Each endpoint has a set of the addresses of its
 * clients. The kernel removes an address when its last connection began longer ago than the timeout.
 */
import { createHash } from 'node:crypto';
import type { Service, ServicePort } from '../../api/generated/types.ts';
import type { IpFamily } from '../../machinery/ip.ts';
import { NFT_WORDS } from '../families.ts';
import type { Chain, NftSet } from '../nftables/section.ts';
import { chooseChain, slotsOf, trafficRules } from './balancing.ts';
import type { Frontend } from './frontends.ts';
import { STEP_LENGTH } from './rule-limits.ts';
import type { Range, Slots } from './slots.ts';

/** The default timeout of session affinity in v1.33: three hours. */
const DEFAULT_TIMEOUT_SECONDS = 10_800;
/**
 * The maximum number of remembered clients of an endpoint: the kernel requires a limit for sets to which rules add elements. Further
 * clients get a random endpoint each time.
 */
const MAX_CLIENTS = 65_535;

export interface Affinity {
  chainFor(
    frontend: Pick<Frontend, 'family' | 'policy'>,
    reached: Pick<Slots, 'cluster' | 'local'>,
    podCidrs: readonly string[],
  ): { chain: string; chains: Chain[]; sets: NftSet[] };
}

export function* affinityOf(
  { metadata, spec }: Service,
  port: ServicePort,
  family: IpFamily,
  slots: Slots,
): Generator<void, Affinity> {
  const { ip, type, number } = NFT_WORDS[family];
  const hash = (...texts: string[]): string =>
    hashOf(metadata.namespace, metadata.name, port.protocol, port.name, String(number), ...texts);
  const timeoutSeconds = spec?.sessionAffinityConfig?.clientIP?.timeoutSeconds ?? DEFAULT_TIMEOUT_SECONDS;
  const own = hash();
  /** By slot. Names contain the hash and not the slot, so that an endpoint keeps its clients when its slot changes. */
  const hashes: string[] = [];
  for (const target of slots.targets) {
    hashes.push(hash(target));
    if (hashes.length % STEP_LENGTH === 0) yield;
  }
  const chainOf = (slot: number): string => `services/endpoint-${hashes[slot]}`;
  // The kernel cannot change the timeout of a set, so another timeout needs another set.
  const clientsOf = (slot: number): string => `services/clients-${hashes[slot]}-${timeoutSeconds}`;

  const endpointChain = (slot: number): Chain => {
    const [address, port] = (slots.targets[slot] as string).split(' . ');
    const to = family === 'IPv6' ? `[${address}]:${port}` : `${address}:${port}`;
    return {
      name: chainOf(slot),
      rules: [`update @${clientsOf(slot)} { ${ip} saddr }`, `meta l4proto { tcp, udp, sctp } dnat ${ip} to ${to}`],
    };
  };
  const clientSet = (slot: number): NftSet => ({
    name: clientsOf(slot),
    kind: 'set',
    type,
    options: `flags dynamic,timeout; timeout ${timeoutSeconds}s; size ${MAX_CLIENTS};`,
    dynamic: true,
  });
  const choiceName = ({ start, count }: Range): string => `services/affinity-${own}-${start}-${count}`;
  const choice = (range: Range): Chain => ({
    name: choiceName(range),
    rules: [
      ...slotsOf(range).map((slot) => `${ip} saddr @${clientsOf(slot)} goto ${chainOf(slot)}`),
      chooseChain(range, chainOf),
    ],
  });

  return {
    chainFor({ policy }, reached, podCidrs) {
      const ranges = (policy === 'local' ? [reached.cluster, reached.local] : [reached.cluster]).filter(
        ({ count }) => count > 0,
      );
      const used = [...new Set(ranges.flatMap(slotsOf))];
      const chain = `services/${policy}-${own}-${ranges.map(({ start, count }) => `${start}-${count}`).join('-')}`;
      const rules = trafficRules({ family, policy }, reached, podCidrs, (range) => `goto ${choiceName(range)}`);
      return {
        chain,
        chains: [{ name: chain, rules }, ...ranges.map(choice), ...used.map(endpointChain)],
        sets: used.map(clientSet),
      };
    },
  };
}

/** Returns 16 characters that are valid in a name of nft(8). */
export const hashOf = (...texts: readonly (string | undefined)[]): string =>
  createHash('sha256').update(JSON.stringify(texts)).digest('hex').slice(0, 16);
