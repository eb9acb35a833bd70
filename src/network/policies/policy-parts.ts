/** The parts of the section `policies`: the chains at the hooks of the kernel, the chains of policies, and the elements for addresses. */
import type { IpFamily } from '../../machinery/ip.ts';
import { NFT_WORDS } from '../families.ts';
import type { Chain, Elements, NftSet, Part } from '../nftables/section.ts';
import {
  type CompiledPolicy,
  DIRECTIONS,
  type Direction,
  FAMILIES,
  peersSet,
  portSet,
  replyChain,
} from './policy-rules.ts';

export const policyPart = (key: string): string => `policy ${key}`;
export const addressPart = (address: string): string => `address ${address}`;

export function ownerOfPart(part: string): { policy: string } | { address: string } {
  const isPolicy = part.startsWith(policyPart(''));
  return isPolicy ? { policy: part.slice(policyPart('').length) } : { address: part.slice(addressPart('').length) };
}

const selfSet = (family: IpFamily): string => `policies/self-${NFT_WORDS[family].ip}`;
const isolatedMap = (direction: Direction, isReply: boolean, family: IpFamily): string =>
  `policies/${direction}${isReply ? '-reply' : ''}-${NFT_WORDS[family].ip}`;

/** Packets that the egress chain accepts continue in the ingress chain. */
const PRIORITIES = { egress: 'filter', ingress: 'filter + 1' } as const;

export function baseRules(): Part {
  const chains: Chain[] = [];
  const sets: NftSet[] = FAMILIES.map((family) => {
    const { type } = NFT_WORDS[family];
    return { name: selfSet(family), kind: 'set', type: `${type} . ${type}` };
  });
  for (const direction of DIRECTIONS) {
    const lookUps = (isReply: boolean): string[] =>
      FAMILIES.map((family) => {
        const side = (direction === 'egress') === isReply ? 'daddr' : 'saddr';
        return `${NFT_WORDS[family].ip} ${side} vmap @${isolatedMap(direction, isReply, family)}`;
      });
    for (const isReply of [false, true]) {
      for (const family of FAMILIES) {
        const type = `${NFT_WORDS[family].type} : verdict`;
        sets.push({ name: isolatedMap(direction, isReply, family), kind: 'map', type });
      }
    }
    chains.push(
      {
        name: `policies/${direction}`,
        base: `type filter hook forward priority ${PRIORITIES[direction]}; policy accept;`,
        rules: [
          'ct state related meta l4proto { icmp, ipv6-icmp } accept',
          ...FAMILIES.map((family) => {
            const { ip } = NFT_WORDS[family];
            return `${ip} saddr . ${ip} daddr @${selfSet(family)} accept`;
          }),
          `ct direction reply goto policies/${direction}-reply`,
          ...lookUps(false),
        ],
      },
      { name: `policies/${direction}-reply`, rules: lookUps(true) },
    );
  }
  return { chains, sets };
}

/** Returns empty chains for a policy whose rules nft(8) rejects. */
export const chainsThatAllowNothing = ({ isolates }: CompiledPolicy): Chain[] =>
  Object.values(isolates).flatMap((name) => [
    { name, rules: [] },
    { name: replyChain(name), rules: [] },
  ]);

export const profileOf = (name: string, asked: readonly string[]): Part => ({
  chains: [
    { name, rules: [...asked.map((chain) => `jump ${chain}`), 'drop'] },
    { name: replyChain(name), rules: [...asked.map((chain) => `jump ${replyChain(chain)}`), 'drop'] },
  ],
});

interface Membership {
  chains: readonly [Direction, string][];
  selections: readonly string[];
  ports: readonly { id: string; port: number }[];
}

export function elementsOf(address: string, family: IpFamily, { chains, selections, ports }: Membership): Part {
  const elements: Elements[] = [];
  const add = (set: string, key: string, value = ''): void => {
    elements.push({ set, values: new Map([[key, value]]) });
  };
  // If nft(8) rejects the elements of a Pod, its policies isolate the Pod and allow nothing, and no peer selects it.
  const isolated = chains.flatMap(([direction]): Elements[] =>
    [false, true].map((isReply) => ({
      set: isolatedMap(direction, isReply, family),
      values: new Map([[address, 'drop']]),
    })),
  );
  for (const [direction, chain] of chains) {
    add(isolatedMap(direction, false, family), address, `goto ${chain}`);
    add(isolatedMap(direction, true, family), address, `goto ${replyChain(chain)}`);
  }
  if (chains.length > 0) add(selfSet(family), `${address} . ${address}`);
  for (const id of selections) add(peersSet(id, family), address);
  for (const { id, port } of ports) add(portSet(id, family), `${address} . ${port}`);
  return { elements, fallback: { elements: isolated } };
}
