/**
 * Derives the chains of one NetworkPolicy, and the selections and named ports that these chains refer to.
 *
 * Each direction has two chains, which accept packets that a rule allows and return otherwise: one for the packets of the side that has
 * opened the connection, and one with exchanged addresses and ports for the replies. No packet is accepted because its connection is
 * established, so that a connection that is no longer allowed is cut in both directions.
 * Source: the API reference of NetworkPolicy v1 (behavior).
 */
import { createHash } from 'node:crypto';
import type { NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort } from '../../api/generated/types.ts';
import { formatIpRange, type IpFamily, type IpRange, parseIpRange, rangeContainsRange } from '../../machinery/ip.ts';
import { type LabelMatcher, labelSelectorMatcher } from '../../machinery/labels.ts';
import { NFT_WORDS } from '../families.ts';
import type { Chain } from '../nftables/section.ts';

export type Direction = 'ingress' | 'egress';
export const DIRECTIONS: readonly Direction[] = ['ingress', 'egress'];
export const FAMILIES: readonly IpFamily[] = ['IPv4', 'IPv6'];

/** The Pods that a peer selects. Two peers with the same ID select the same Pods. */
export interface Selection {
  id: string;
  /** The namespace of the Pods; absent: all namespaces with matching labels. */
  namespace?: string;
  matchesNamespace: LabelMatcher;
  matchesPod: LabelMatcher;
  /** A Pod without one of these facts is not selected. */
  facts: readonly string[];
}

export const namespaceFact = (namespace: string): string => `in ${namespace}`;
export const labelFacts = (of: 'Pod' | 'namespace', labels: Readonly<Record<string, string>> = {}): string[] =>
  Object.entries(labels).map(([key, value]) => `${of} ${key}=${value}`);

export interface CompiledPolicy {
  namespace: string;
  matchesPod: LabelMatcher;
  /** The chains for packets of the side that opens the connection, by the directions in which the policy isolates Pods. */
  isolates: Partial<Record<Direction, string>>;
  chains: Chain[];
  selections: Selection[];
  /** Results of portId(). */
  namedPorts: Set<string>;
}

/** Returns a hash of 32 characters. Different values have different hashes. */
export const idOf = (...values: unknown[]): string =>
  createHash('sha256').update(JSON.stringify(values)).digest('hex').slice(0, 32);

export const portId = (protocol: string, name: string): string => idOf(protocol, name);
export const peersSet = (id: string, family: IpFamily): string => `policies/peers-${id}-${NFT_WORDS[family].ip}`;
export const portSet = (id: string, family: IpFamily): string => `policies/port-${id}-${NFT_WORDS[family].ip}`;
export const replyChain = (chain: string): string => `${chain}-reply`;

export function compilePolicy({ metadata, spec }: NetworkPolicy): CompiledPolicy {
  const namespace = metadata.namespace ?? '';
  const compiled: CompiledPolicy = {
    namespace,
    matchesPod: labelSelectorMatcher(spec?.podSelector),
    isolates: {},
    chains: [],
    selections: [],
    namedPorts: new Set(),
  };
  const rulesOf = {
    ingress: (spec?.ingress ?? []).map(({ from, ports }) => ({ peers: from ?? [], ports: ports ?? [] })),
    egress: (spec?.egress ?? []).map(({ to, ports }) => ({ peers: to ?? [], ports: ports ?? [] })),
  };
  for (const direction of DIRECTIONS) {
    if (!isolates(spec, direction)) continue;
    const name = `policies/${direction}-of-${idOf(namespace, metadata.name)}`;
    compiled.isolates[direction] = name;
    for (const isReply of [false, true]) {
      const chain = isReply ? replyChain(name) : name;
      compiled.chains.push(...chainsOf(chain, rulesOf[direction], { direction, isReply, namespace }, compiled));
    }
  }
  return compiled;
}

function isolates(spec: NetworkPolicy['spec'], direction: Direction): boolean {
  const types = spec?.policyTypes ?? [];
  if (types.length > 0) return types.includes(direction === 'ingress' ? 'Ingress' : 'Egress');
  return direction === 'ingress' || (spec?.egress ?? []).length > 0;
}

interface Rule {
  peers: readonly NetworkPolicyPeer[];
  ports: readonly NetworkPolicyPort[];
}

interface Context {
  direction: Direction;
  isReply: boolean;
  namespace: string;
}

type Collected = Pick<CompiledPolicy, 'selections' | 'namedPorts'>;

/** Several conditions on ports get a chain of their own, because each peer would repeat them otherwise. */
function chainsOf(name: string, rules: readonly Rule[], context: Context, collected: Collected): Chain[] {
  const main: string[] = [];
  const others: Chain[] = [];
  for (const [index, { peers, ports }] of rules.entries()) {
    const peerTexts = peers.length === 0 ? [''] : peers.flatMap((peer) => peerMatches(peer, context, collected));
    const portTexts = ports.length === 0 ? [''] : portMatches(ports, context, collected);
    const portRules = portTexts.map((text) => joined(text, 'accept'));
    if (portRules.length === 1) {
      main.push(...peerTexts.map((text) => joined(text, portRules[0] ?? '')));
    } else {
      const chain = `${name}-${index}`;
      others.push({ name: chain, rules: portRules });
      main.push(...peerTexts.map((text) => joined(text, `jump ${chain}`)));
    }
  }
  return [{ name, rules: main }, ...others];
}

const joined = (match: string, rest: string): string => (match === '' ? rest : `${match} ${rest}`);

function peerMatches(peer: NetworkPolicyPeer, { direction, isReply, namespace }: Context, to: Collected): string[] {
  const side = (direction === 'ingress') === isReply ? 'daddr' : 'saddr';
  const { ipBlock, namespaceSelector, podSelector } = peer;
  if (ipBlock !== undefined) return blockMatch(ipBlock, side);
  const isLocal = namespaceSelector === undefined;
  const id = idOf(isLocal ? namespace : null, namespaceSelector ?? null, podSelector ?? null);
  to.selections.push({
    id,
    ...(isLocal ? { namespace } : {}),
    matchesNamespace: isLocal ? () => true : labelSelectorMatcher(namespaceSelector),
    matchesPod: podSelector === undefined ? () => true : labelSelectorMatcher(podSelector),
    facts: [
      ...(isLocal ? [namespaceFact(namespace)] : labelFacts('namespace', namespaceSelector.matchLabels)),
      ...labelFacts('Pod', podSelector?.matchLabels),
    ],
  });
  return FAMILIES.map((family) => `${NFT_WORDS[family].ip} ${side} @${peersSet(id, family)}`);
}

function blockMatch({ cidr, except = [] }: { cidr: string; except?: string[] }, side: string): string[] {
  const range = parseIpRange(cidr);
  if (range === undefined) return [];
  const { ip } = NFT_WORDS[range.family];
  const excluded = except.map(parseIpRange).filter((each) => each !== undefined);
  if (excluded.some((each) => rangeContainsRange(each, range))) return [];
  const texts = outermost(excluded.filter((each) => each.family === range.family)).map(formatIpRange);
  const without = texts.length === 0 ? '' : ` ${ip} ${side} != { ${texts.join(', ')} }`;
  return [`${ip} ${side} ${formatIpRange(range)}${without}`];
}

/** Returns the ranges without those that another range contains, because nft(8) rejects sets with overlapping ranges. */
function outermost(ranges: readonly IpRange[]): IpRange[] {
  const kept: IpRange[] = [];
  const sorted = ranges.toSorted((a, b) =>
    a.base < b.base ? -1 : a.base > b.base ? 1 : a.prefixLength - b.prefixLength,
  );
  for (const range of sorted) {
    const last = kept.at(-1);
    if (last === undefined || !rangeContainsRange(last, range)) kept.push(range);
  }
  return kept;
}

function portMatches(ports: readonly NetworkPolicyPort[], { isReply }: Context, { namedPorts }: Collected): string[] {
  const [port, address] = isReply ? ['sport', 'saddr'] : ['dport', 'daddr'];
  const texts: string[] = [];
  for (const name of ['TCP', 'UDP', 'SCTP']) {
    const protocol = name.toLowerCase();
    const own = ports.filter((each) => (each.protocol ?? 'TCP') === name);
    if (own.some((each) => each.port === undefined)) {
      texts.push(`meta l4proto ${protocol}`);
      continue;
    }
    const ranges = mergedRanges(own);
    if (ranges.length > 0) texts.push(`${protocol} ${port} { ${ranges.join(', ')} }`);
    for (const named of new Set(own.map((each) => each.port).filter((each) => typeof each === 'string'))) {
      const id = portId(name, named);
      namedPorts.add(id);
      for (const family of FAMILIES)
        texts.push(`${NFT_WORDS[family].ip} ${address} . ${protocol} ${port} @${portSet(id, family)}`);
    }
  }
  return texts;
}

/** Returns the numbers and ranges of ports, such as `80` and `90-95`, without overlaps. */
function mergedRanges(ports: readonly NetworkPolicyPort[]): string[] {
  const ranges = ports
    .flatMap(({ port, endPort }) => (typeof port === 'number' ? [{ first: port, last: endPort ?? port }] : []))
    .sort((a, b) => a.first - b.first);
  const merged: { first: number; last: number }[] = [];
  for (const range of ranges) {
    const last = merged.at(-1);
    if (last !== undefined && range.first <= last.last + 1) last.last = Math.max(last.last, range.last);
    else merged.push({ ...range });
  }
  return merged.map(({ first, last }) => (first === last ? String(first) : `${first}-${last}`));
}
