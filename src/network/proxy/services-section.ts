/**
 * Keeps the section `services` of the nftables table current: a change derives only the rules of the Services that it affects, and other
 * work may run between its steps.
 *
 * Invariants:
 *  1. The section is the same as one that is built from the same objects at once, except for the order of endpoints.
 *  2. If several Services claim the same address and port, the oldest one has it.
 */
import type { EndpointSlice, Service } from '../../api/generated/types.ts';
import { runAtOnce } from '../../platform/work-in-turns.ts';
import type { Part, Section } from '../nftables/section.ts';
import { Balancing, type SharedPart } from './balancing.ts';
import { baseRules } from './base-rules.ts';
import { type Claimant, Claims, claimantOf } from './claims.ts';
import { STEP_LENGTH } from './rule-limits.ts';
import { type NodeFacts, rulesOfService, type ServiceRules } from './service-rules.ts';
import type { Slots } from './slots.ts';

const NO_SLOTS: ReadonlyMap<string, Slots> = new Map();

const partOf = (key: string): string => `service ${key}`;

/** Returns `<namespace>/<name>` of the Service. */
export const keyOfPart = (part: string): string => part.slice(partOf('').length);

/** The claims of one Service. `by` is undefined if the Service does not exist. */
interface ClaimsOfOne {
  claims: readonly string[];
  by: Claimant | undefined;
}

export class ServicesSection {
  readonly #node: NodeFacts;
  readonly #balancing: Balancing;
  readonly #parts: Map<string, Part>;
  readonly #rules = new Map<string, { service: Service; rules: ServiceRules }>();
  /** By name of a shared part: the number of parts that need it. */
  readonly #uses = new Map<string, number>();
  readonly #claims = new Claims();

  constructor(node: NodeFacts) {
    this.#node = node;
    this.#balancing = new Balancing(node.podCidrs);
    this.#parts = new Map([['base', baseRules(node)]]);
  }

  section(): Section {
    return new Map(this.#parts);
  }

  /** In CIDR notation. */
  setServiceCidrs(serviceCidrs: readonly string[]): void {
    this.#parts.set('base', baseRules({ ...this.#node, serviceCidrs }));
  }

  /** `key`: `<namespace>/<name>`. Returns undefined if the Service does not exist or has not been taken in. */
  rulesOf(key: string): ServiceRules | undefined {
    return this.#rules.get(key)?.rules;
  }

  /**
   * Derives the rules of a Service again. `service`: undefined if the Service does not exist. Returns the keys of the Services that the
   * caller must update next, because they claim something that this Service has got or given up.
   */
  update(key: string, service: Service | undefined, slices: readonly EndpointSlice[]): Set<string> {
    return runAtOnce(this.steps(key, service, slices));
  }

  /** Does the same as update() in short steps. The steps must end before other steps begin, and before section() is called. */
  *steps(key: string, service: Service | undefined, slices: readonly EndpointSlice[]): Generator<void, Set<string>> {
    const old = this.#rules.get(key);
    const before = { claims: old?.rules.claims ?? [], by: old && claimantOf(key, old.service) };
    if (service === undefined) {
      this.#rules.delete(key);
      this.#parts.delete(partOf(key));
      yield* this.#unneed(old?.rules.needs ?? []);
      return this.#claim(before, { claims: [], by: undefined });
    }
    const by = claimantOf(key, service);
    const rules = yield* rulesOfService(service, slices, {
      node: this.#node,
      balancing: this.#balancing,
      mayHave: (claim) => this.#claims.mayHave(claim, by),
      previous: old?.rules.slots ?? NO_SLOTS,
    });
    yield* this.#need(rules.needs);
    yield* this.#unneed(old?.rules.needs ?? []);
    this.#rules.set(key, { service, rules });
    this.#parts.set(partOf(key), rules.part);
    return this.#claim(before, { claims: rules.claims, by });
  }

  /** Returns the keys of the Services that get or lose a claimed address and port. */
  #claim(before: ClaimsOfOne, after: ClaimsOfOne): Set<string> {
    const affected = new Set<string | undefined>();
    const isSameAge = before.by?.age === after.by?.age;
    const isSame =
      before.claims.length === after.claims.length &&
      before.claims.every((claim, index) => claim === after.claims[index]);
    if (isSame && isSameAge) return new Set();
    const [old, current] = [new Set(before.claims), new Set(after.claims)];
    for (const claim of old) {
      if (before.by !== undefined && !(isSameAge && current.has(claim)))
        affected.add(this.#claims.remove(claim, before.by));
    }
    for (const claim of current) {
      if (after.by !== undefined && !(isSameAge && old.has(claim))) affected.add(this.#claims.add(claim, after.by));
    }
    affected.delete(undefined);
    return affected as Set<string>;
  }

  *#need(shared: readonly SharedPart[]): Generator<void, void> {
    for (const [index, { name, part, needs }] of shared.entries()) {
      if (index % STEP_LENGTH === STEP_LENGTH - 1) yield;
      const uses = this.#uses.get(name) ?? 0;
      this.#uses.set(name, uses + 1);
      if (uses > 0) continue;
      this.#parts.set(name, part);
      yield* this.#need(needs);
    }
  }

  *#unneed(shared: readonly SharedPart[]): Generator<void, void> {
    for (const [index, { name, needs }] of shared.entries()) {
      if (index % STEP_LENGTH === STEP_LENGTH - 1) yield;
      const uses = (this.#uses.get(name) ?? 1) - 1;
      if (uses > 0) {
        this.#uses.set(name, uses);
        continue;
      }
      this.#uses.delete(name);
      this.#parts.delete(name);
      this.#balancing.forget(name);
      yield* this.#unneed(needs);
    }
  }
}
