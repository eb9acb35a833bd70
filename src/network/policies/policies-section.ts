/**
 * The section `policies` of the instance's nftables table: which forwarded packets NetworkPolicies allow.
 *
 * Packets are judged where the machine forwards them: after a Service's address has become a Pod's, and before a source is masqueraded.
 * Packets between the node's own programs and Pods are not forwarded, so they are allowed, as upstream documents it. Packets of a Pod to
 * itself are accepted, too.
 *
 * An address of an isolated Pod leads to the chain of its profile, which all Pods with the same policies share. The chain asks each policy,
 * and drops packets that none has accepted. Pods that peers select are elements of sets. Thus a change of a Pod changes only elements.
 *
 * Selections are found by the rarest label or namespace that they require. A changed Pod is compared only with the selections that it may
 * match, and the other Pods only with the selections that a changed policy adds.
 */
import type { NetworkPolicy } from '../../api/generated/types.ts';
import { formatIp, type IpFamily, parseIp } from '../../machinery/ip.ts';
import { runAtOnce } from '../../platform/work-in-turns.ts';
import type { Part, Section } from '../nftables/section.ts';
import { byRarestFact, indexOf, type PolicyIndex, partsOf, type SelectionsByFact } from './policy-index.ts';
import { addressPart, baseRules, chainsThatAllowNothing, elementsOf, policyPart, profileOf } from './policy-parts.ts';
import {
  type CompiledPolicy,
  compilePolicy,
  DIRECTIONS,
  type Direction,
  idOf,
  labelFacts,
  namespaceFact,
  portId,
} from './policy-rules.ts';

export interface PolicyPod {
  namespace: string;
  labels: Readonly<Record<string, string>>;
  addresses: readonly string[];
  ports: readonly { name: string; protocol: string; port: number }[];
}

const RULES = baseRules();

interface PodEntry {
  pod: PolicyPod;
  /** Undefined if the parts must be derived again. */
  parts?: Map<string, Part>;
  /** The IDs of the selections of the index that contain the Pod. Undefined: all selections must be examined. */
  matched?: Set<string>;
  profiles: Part[];
}

interface PolicyEntry {
  policy: NetworkPolicy;
  /** Absent until the next section is derived. */
  compiled?: CompiledPolicy;
  part?: Part;
}

export class PoliciesSection {
  readonly #policies = new Map<string, PolicyEntry>();
  readonly #namespaces = new Map<string, Readonly<Record<string, string>>>();
  /** The Pods in the order in which they got their addresses. An address that several Pods report belongs to the last of them. */
  readonly #pods = new Map<string, PodEntry>();
  readonly #profiles = new Map<string, Part>();
  /** Derived by the last call of steps(). */
  #index: PolicyIndex = { policies: new Map(), selections: new Map(), byFact: new Map(), namedPorts: new Set() };
  #isIndexStale = false;
  #selectionParts: ReadonlyMap<string, Part> = new Map();

  /** Stores or removes the policy. `key`: any text that identifies the policy. `policy`: undefined if the policy was deleted. */
  setPolicy(key: string, policy: NetworkPolicy | undefined): void {
    if (policy === undefined) this.#policies.delete(key);
    else this.#policies.set(key, { policy });
    this.#isIndexStale = true;
  }

  setNamespace(name: string, labels: Readonly<Record<string, string>> | undefined): void {
    if (JSON.stringify(this.#namespaces.get(name)) === JSON.stringify(labels)) return;
    if (labels === undefined) this.#namespaces.delete(name);
    else this.#namespaces.set(name, labels);
    for (const entry of this.#pods.values()) {
      if (entry.pod.namespace !== name) continue;
      delete entry.parts;
      delete entry.matched;
    }
  }

  pod(key: string): PolicyPod | undefined {
    return this.#pods.get(key)?.pod;
  }

  /**
   * Adds, replaces or removes the Pod, and returns whether anything has changed. `pod`: undefined if the Pod has no addresses of its own
   * any more.
   */
  setPod(key: string, pod: PolicyPod | undefined): boolean {
    const old = this.#pods.get(key)?.pod;
    if (JSON.stringify(old) === JSON.stringify(pod)) return false;
    if (pod === undefined || JSON.stringify(old?.addresses) !== JSON.stringify(pod.addresses)) this.#pods.delete(key);
    if (pod !== undefined) this.#pods.set(key, { pod, profiles: [] });
    return true;
  }

  /** Replaces the parts with these names by copies, so that the table tries them again although nft(8) has rejected them. */
  renew(names: ReadonlySet<string>): void {
    for (const [key, entry] of this.#policies)
      if (entry.part !== undefined && names.has(policyPart(key))) entry.part = { ...entry.part };
    for (const { parts } of this.#pods.values())
      for (const [address, part] of parts ?? []) if (names.has(addressPart(address))) parts?.set(address, { ...part });
  }

  section(): Section {
    return runAtOnce(this.steps());
  }

  /**
   * Derives the section in short steps, and returns it. A change that is stored between two steps may be missing in this section, but not
   * in the next one. A derivation must end before the next one begins.
   */
  *steps(): Generator<void, Section> {
    const policies = [...this.#policies];
    const pods = [...this.#pods.values()];
    if (this.#isIndexStale) {
      this.#isIndexStale = false;
      yield* this.#renewIndex(
        policies.map(([, entry]) => entry),
        pods,
      );
    }
    const parts = new Map<string, Part>([['rules', RULES], ...this.#selectionParts]);
    for (const [key, { part }] of policies) if (part !== undefined) parts.set(policyPart(key), part);
    yield;
    for (const entry of pods) {
      if (entry.parts === undefined) {
        entry.parts = this.#derive(entry);
        yield;
      }
      for (const [address, part] of entry.parts ?? []) parts.set(addressPart(address), part);
      for (const profile of entry.profiles) parts.set(`profile ${profile.chains?.[0]?.name}`, profile);
    }
    return parts;
  }

  *#renewIndex(policies: readonly PolicyEntry[], pods: readonly PodEntry[]): Generator<void> {
    const compiled: CompiledPolicy[] = [];
    for (const entry of policies) {
      if (entry.compiled === undefined) {
        entry.compiled = compilePolicy(entry.policy);
        entry.part = { chains: entry.compiled.chains, fallback: { chains: chainsThatAllowNothing(entry.compiled) } };
        yield;
      }
      compiled.push(entry.compiled);
    }
    const before = this.#index;
    const index = yield* indexOf(compiled);
    const added = yield* byRarestFact([...index.selections.values()].filter(({ id }) => !before.selections.has(id)));
    this.#selectionParts = yield* partsOf(index, this.#selectionParts);
    this.#index = index;
    this.#profiles.clear();
    for (const entry of pods) {
      yield;
      delete entry.parts;
      if (entry.matched === undefined) continue;
      for (const id of entry.matched) if (!index.selections.has(id)) entry.matched.delete(id);
      for (const id of this.#matching(entry.pod, added)) entry.matched.add(id);
    }
  }

  #matching({ namespace, labels }: PolicyPod, selections: SelectionsByFact): string[] {
    const ofNamespace = this.#namespaces.get(namespace) ?? {};
    const facts = [
      undefined,
      namespaceFact(namespace),
      ...labelFacts('namespace', ofNamespace),
      ...labelFacts('Pod', labels),
    ];
    return facts
      .flatMap((fact) => selections.get(fact) ?? [])
      .filter(
        (each) =>
          (each.namespace ?? namespace) === namespace && each.matchesPod(labels) && each.matchesNamespace(ofNamespace),
      )
      .map(({ id }) => id);
  }

  #derive(entry: PodEntry): Map<string, Part> {
    const index = this.#index;
    const { pod } = entry;
    const chains: [Direction, string][] = [];
    const policies = (index.policies.get(pod.namespace) ?? []).filter(({ matchesPod }) => matchesPod(pod.labels));
    entry.profiles = [];
    for (const direction of DIRECTIONS) {
      const asked = policies.map(({ isolates }) => isolates[direction]).filter((name) => name !== undefined);
      if (asked.length === 0) continue;
      const name = `policies/${direction}-by-${idOf(asked.sort())}`;
      chains.push([direction, name]);
      const profile = this.#profiles.get(name) ?? profileOf(name, asked);
      this.#profiles.set(name, profile);
      entry.profiles.push(profile);
    }
    entry.matched ??= new Set(this.#matching(pod, index.byFact));
    const selections = [...entry.matched];
    const ports = pod.ports
      .map(({ name, protocol, port }) => ({ id: portId(protocol, name), port }))
      .filter(({ id }) => index.namedPorts.has(id));
    return new Map(
      addressesOf(pod).map(([address, family]) => [
        address,
        elementsOf(address, family, { chains, selections, ports }),
      ]),
    );
  }
}

/** Returns the valid addresses of the Pod in canonical form, each with its family. */
const addressesOf = ({ addresses }: PolicyPod): [string, IpFamily][] =>
  addresses.flatMap((text) => {
    const ip = parseIp(text);
    return ip === undefined ? [] : [[formatIp(ip), ip.family]];
  });
