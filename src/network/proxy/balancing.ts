/**
 * Chains that choose an endpoint at random, shared by all Services with the same number of endpoints.
 *
 * The endpoint in slot 3 of a frontend is an element of the map `endpoints-4-3`, whose key is the frontend. The chain `to-4-3` translates
 * the destination to the endpoint in this map. The chain `internal-4-0-10` chooses one of ten slots. Therefore a Service needs no chain of
 * its own, and a changed endpoint is a changed element. kube-proxy has a chain for each Service and each endpoint instead.
 */
import type { IpFamily } from '../../machinery/ip.ts';
import { NFT_WORDS } from '../families.ts';
import type { Chain, Part } from '../nftables/section.ts';
import { MARK, ofFamily } from './base-rules.ts';
import type { Frontend } from './frontends.ts';
import { STEP_LENGTH } from './rule-limits.ts';
import type { Range, Slots } from './slots.ts';

/** Parts with the same name are the same object. */
export interface SharedPart {
  name: string;
  part: Part;
  needs: readonly SharedPart[];
}

/** Node ports, which are frontends without an address, have other maps. */
export const slotMap = (family: IpFamily, isNodePort: boolean, slot: number): string =>
  `services/${isNodePort ? 'node-port-' : ''}endpoints-${NFT_WORDS[family].number}-${slot}`;

/**
 * Returns the rules that choose an endpoint for a packet, by the traffic policy. `choose` returns the statement that chooses one of the
 * slots in a range.
 */
export function trafficRules(
  { family, policy }: Pick<Frontend, 'family' | 'policy'>,
  { cluster, local }: Pick<Slots, 'cluster' | 'local'>,
  podCidrs: readonly string[],
  choose: (range: Range) => string,
): string[] {
  const { ip } = NFT_WORDS[family];
  const pods = ofFamily(podCidrs, family);
  const fromPods = pods.length === 0 ? undefined : `${ip} saddr { ${pods.join(', ')} }`;
  if (policy === 'internal') {
    const fromElsewhere = pods.length === 0 ? '' : `${ip} saddr != { ${pods.join(', ')} } `;
    return [`${fromElsewhere}${MARK}`, choose(cluster)];
  }
  if (policy === 'external') return [MARK, choose(cluster)];
  // The policy Local is for traffic from outside. Pods and programs of the node reach all endpoints.
  const inside =
    cluster.count === 0
      ? []
      : [
          ...(fromPods === undefined ? [] : [`${fromPods} ${choose(cluster)}`]),
          `fib saddr type local ${MARK}`,
          `fib saddr type local ${choose(cluster)}`,
        ];
  return [...inside, ...(local.count === 0 ? [] : [choose(local)])];
}

export function chooseChain({ start, count }: Range, chainOf: (slot: number) => string): string {
  if (count === 1) return `goto ${chainOf(start)}`;
  const elements = Array.from({ length: count }, (_, index) => `${start + index} : goto ${chainOf(start + index)}`);
  return `numgen random mod ${count} offset ${start} vmap { ${elements.join(', ')} }`;
}

export class Balancing {
  readonly #podCidrs: readonly string[];
  readonly #parts = new Map<string, SharedPart>();

  constructor(podCidrs: readonly string[]) {
    this.#podCidrs = podCidrs;
  }

  /** Returns the part with the chain that chooses an endpoint of the frontend. The chain has the name of the part. */
  *chainFor(
    { family, policy, address }: Frontend,
    { cluster, local }: Pick<Slots, 'cluster' | 'local'>,
  ): Generator<void, SharedPart> {
    const isNodePort = address === undefined;
    const ranges = policy === 'local' ? [cluster, local] : [cluster];
    const numbers = [NFT_WORDS[family].number, ...ranges.flatMap(({ start, count }) => [start, count])];
    const name = `services/${isNodePort ? 'node-port-' : ''}${policy}-${numbers.join('-')}`;
    const known = this.#parts.get(name);
    if (known !== undefined) return known;
    const needs: SharedPart[] = [];
    for (const slot of new Set(ranges.flatMap(slotsOf))) {
      needs.push(this.#slot(family, isNodePort, slot));
      if (needs.length % STEP_LENGTH === 0) yield;
    }
    const choose = (range: Range): string => chooseChain(range, (slot) => chainOf(family, isNodePort, slot));
    const rules = trafficRules({ family, policy }, { cluster, local }, this.#podCidrs, choose);
    return this.#shared(name, () => ({ part: { chains: [{ name, rules }] }, needs }));
  }

  forget(name: string): void {
    this.#parts.delete(name);
  }

  #slot(family: IpFamily, isNodePort: boolean, slot: number): SharedPart {
    const map = slotMap(family, isNodePort, slot);
    return this.#shared(map, () => {
      const { ip, type } = NFT_WORDS[family];
      const [key, keyType] = isNodePort ? ['', ''] : [`${ip} daddr . `, `${type} . `];
      const chain: Chain = {
        name: chainOf(family, isNodePort, slot),
        rules: [`dnat ${ip} to ${key}meta l4proto . th dport map @${map}`],
      };
      const set = {
        name: map,
        kind: 'map',
        type: `${keyType}inet_proto . inet_service : ${type} . inet_service`,
      } as const;
      return { part: { sets: [set], chains: [chain] }, needs: [] };
    });
  }

  #shared(name: string, create: () => Omit<SharedPart, 'name'>): SharedPart {
    let found = this.#parts.get(name);
    if (found === undefined) {
      const { part, needs } = create();
      found = { name, part: { ...part, needs: needs.map(({ name }) => name) }, needs };
      this.#parts.set(name, found);
    }
    return found;
  }
}

export const slotsOf = ({ start, count }: Range): number[] =>
  Array.from({ length: count }, (_, index) => start + index);

const chainOf = (family: IpFamily, isNodePort: boolean, slot: number): string =>
  `services/${isNodePort ? 'node-port-' : ''}to-${NFT_WORDS[family].number}-${slot}`;
