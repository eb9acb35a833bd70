/** An index of NetworkPolicies by namespace, and of the selections of their peers by a fact that selected Pods must have. */
import type { IpFamily } from '../../machinery/ip.ts';
import { NFT_WORDS } from '../families.ts';
import type { NftSet, Part } from '../nftables/section.ts';
import { type CompiledPolicy, FAMILIES, peersSet, portSet, type Selection } from './policy-rules.ts';

/** The selections by a fact that a Pod must have to match. The key undefined has the selections that any Pod may match. */
export type SelectionsByFact = ReadonlyMap<string | undefined, readonly Selection[]>;

export interface PolicyIndex {
  policies: ReadonlyMap<string, readonly CompiledPolicy[]>;
  selections: ReadonlyMap<string, Selection>;
  byFact: SelectionsByFact;
  namedPorts: ReadonlySet<string>;
}

const STEP = 100;

export function* indexOf(policies: readonly CompiledPolicy[]): Generator<void, PolicyIndex> {
  const selections = new Map<string, Selection>();
  const namedPorts = new Set<string>();
  for (const policy of policies) {
    for (const each of policy.selections) selections.set(each.id, each);
    for (const id of policy.namedPorts) namedPorts.add(id);
    yield;
  }
  const byFact = yield* byRarestFact([...selections.values()]);
  return { policies: Map.groupBy(policies, ({ namespace }) => namespace), selections, byFact, namedPorts };
}

/** Returns the selections by their rarest fact, the one that the fewest selections require. Yields between short steps. */
export function* byRarestFact(selections: readonly Selection[]): Generator<void, SelectionsByFact> {
  const counts = new Map<string, number>();
  for (const [position, { facts }] of selections.entries()) {
    for (const fact of facts) counts.set(fact, (counts.get(fact) ?? 0) + 1);
    if (position % STEP === 0) yield;
  }
  const grouped = new Map<string | undefined, Selection[]>();
  for (const [position, each] of selections.entries()) {
    const [rarest] = each.facts.toSorted((a, b) => (counts.get(a) ?? 0) - (counts.get(b) ?? 0));
    const group = grouped.get(rarest);
    if (group === undefined) grouped.set(rarest, [each]);
    else group.push(each);
    if (position % STEP === 0) yield;
  }
  return grouped;
}

/**
 * Returns the parts with the sets of the selections and named ports, by part name. Parts that `before` contains are used again as the same
 * objects.
 */
export function* partsOf(
  { selections, namedPorts }: PolicyIndex,
  before: ReadonlyMap<string, Part>,
): Generator<void, Map<string, Part>> {
  const parts = new Map<string, Part>();
  const add = (key: string, nameOf: (family: IpFamily) => string, suffix = ''): void => {
    const sets = (): NftSet[] =>
      FAMILIES.map((family) => ({ name: nameOf(family), kind: 'set', type: `${NFT_WORDS[family].type}${suffix}` }));
    parts.set(key, before.get(key) ?? { sets: sets() });
  };
  for (const id of selections.keys()) {
    add(`peers ${id}`, (family) => peersSet(id, family));
    if (parts.size % STEP === 0) yield;
  }
  for (const id of namedPorts) {
    add(`port ${id}`, (family) => portSet(id, family), ' . inet_service');
    if (parts.size % STEP === 0) yield;
  }
  return parts;
}
