/**
 * The part of the section `services` for one Service, derived in short steps. The same objects give the same part.
 * Source: the nftables mode of kube-proxy v1.33 (KEP-3866).
 */
import type { EndpointSlice, Service, ServicePort } from '../../api/generated/types.ts';
import { formatIpRange, parseIpRange } from '../../machinery/ip.ts';
import type { ApiAddresses } from '../api-address.ts';
import { FAMILIES, familyOf, NFT_WORDS } from '../families.ts';
import type { Chain, Elements, NftSet, Part } from '../nftables/section.ts';
import { type Affinity, affinityOf, hashOf } from './affinity.ts';
import { type Balancing, type SharedPart, slotMap, slotsOf } from './balancing.ts';
import { NAMES, ofFamily } from './base-rules.ts';
import { endpointsOf, type Place, type PortEndpoint, type UsableEndpoints, usableEndpoints } from './endpoints.ts';
import { addressesOf, clusterIpsOf, type Frontend, frontendsOf, isIgnored } from './frontends.ts';
import { endpointLimits, MAX_FRONTENDS, STEP_LENGTH } from './rule-limits.ts';
import { assignSlots, NO_SLOTS, type Slots } from './slots.ts';

export interface NodeFacts extends Place {
  /** In CIDR notation. */
  podCidrs: readonly string[];
  serviceCidrs: readonly string[];
  /** Addresses at which programs of the node itself serve, such as the cluster's DNS. The rules leave them out. */
  reservedIps: readonly string[];
  /** The addresses of the API, which no Service gets. */
  api: ApiAddresses;
}

export interface UdpFrontend {
  /** In canonical form; undefined for a node port. */
  address: string | undefined;
  port: number;
  family: Frontend['family'];
  /**
   * The endpoints to which entries of connection tracking may lead, as `10.244.0.7 . 53`: all that are ready or serve, even if new traffic
   * does not reach them.
   */
  targets: ReadonlySet<string>;
}

export interface ServiceRules {
  part: Part;
  needs: readonly SharedPart[];
  /**
   * The addresses and ports that the Service claims, such as `address 10.96.0.7 . tcp . 80`. If several Services claim the same address and
   * port, one of them gets it.
   */
  claims: readonly string[];
  /** By family and port. */
  slots: ReadonlyMap<string, Slots>;
  udp: readonly UdpFrontend[];
  machinePorts: readonly Frontend[];
  /** The number of different addresses of the ready endpoints on this node. */
  localEndpoints: number;
  /** Whether the rules leave out addresses, ports or endpoints, because the Service is too large. */
  isCut: boolean;
}

export interface RuleOptions {
  node: NodeFacts;
  balancing: Balancing;
  mayHave(claim: string): boolean;
  /** The slots in the last result for the Service. */
  previous: ReadonlyMap<string, Slots>;
}

const NO_RULES: ServiceRules = {
  part: {},
  needs: [],
  claims: [],
  slots: new Map(),
  udp: [],
  machinePorts: [],
  localEndpoints: 0,
  isCut: false,
};

export function* rulesOfService(
  service: Service,
  slices: readonly EndpointSlice[],
  options: RuleOptions,
): Generator<void, ServiceRules> {
  if (isIgnored(service)) return NO_RULES;
  const builder = new PartBuilder();
  const claims: string[] = [];
  const claimed = (claim: string): boolean => {
    claims.push(claim);
    return options.mayHave(claim);
  };
  for (const address of clusterIpsOf(service)) {
    const family = familyOf(address);
    if (!options.node.reservedIps.includes(address) && claimed(`cluster-ip ${address}`))
      builder.element(`${NAMES.clusterIps}-${NFT_WORDS[family].number}`, address, '');
  }
  const slots = new Map<string, Slots>();
  const udp: UdpFrontend[] = [];
  const machinePorts: Frontend[] = [];
  const localAddresses = new Set<string>();
  const addresses = addressesOf(service, options.node.reservedIps);
  let isCut = (service.spec?.externalIPs ?? []).length > MAX_FRONTENDS;
  const ports = service.spec?.ports ?? [];
  for (const port of ports) {
    if (claims.length >= MAX_FRONTENDS) {
      isCut = true;
      break;
    }
    yield;
    const all = frontendsOf(service, addresses, port);
    const allowed = all.slice(0, MAX_FRONTENDS - claims.length);
    const frontends = allowed.filter((one) => claimed(claimOf(one)));
    machinePorts.push(...frontends.filter(({ address, isLoadBalancer }) => address === undefined || isLoadBalancer));
    const max = endpointLimits(ports.length, frontends.length);
    isCut ||= allowed.length < all.length;
    for (const family of FAMILIES) {
      const endpoints = yield* endpointsOf(port, family, slices, options.node, max.read);
      for (const { ready, isLocal, target } of endpoints)
        if (ready && isLocal) localAddresses.add(target.split(' ')[0] as string);
      const own = frontends.filter((frontend) => frontend.family === family);
      if (own.length === 0) continue;
      const key = `${family} ${port.protocol} ${port.name ?? ''}`;
      const usable = yield* usableEndpoints(endpoints, options.node, max.used);
      isCut ||= usable.isCut || endpoints.length >= max.read;
      const built = yield* addPort(
        builder,
        { service, port, frontends: own, usable },
        {
          ...options,
          previousSlots: options.previous.get(key) ?? NO_SLOTS,
        },
      );
      slots.set(key, built);
      udp.push(...udpFrontends(port, own, endpoints));
    }
  }
  return { ...builder.result(), claims, slots, udp, machinePorts, localEndpoints: localAddresses.size, isCut };
}

const claimOf = ({ address, family, key }: Frontend): string =>
  address === undefined ? `node-port ${family} ${key}` : `address ${key}`;

/** `isInternalLocal`: the policy Local applies to internal traffic; `usesLocal`: to any traffic. */
const policiesOf = ({ spec }: Service, frontends: readonly Frontend[]) => ({
  isInternalLocal: spec?.internalTrafficPolicy === 'Local',
  usesLocal: spec?.internalTrafficPolicy === 'Local' || frontends.some(({ policy }) => policy === 'local'),
});

interface PortInput {
  service: Service;
  port: ServicePort;
  frontends: readonly Frontend[];
  usable: UsableEndpoints;
}

/** Adds the rules for the frontends of a port to `builder`, and returns the slots of the endpoints. */
function* addPort(
  builder: PartBuilder,
  { service, port, frontends, usable }: PortInput,
  { balancing, node, previousSlots }: RuleOptions & { previousSlots: Slots },
): Generator<void, Slots> {
  const { isInternalLocal, usesLocal } = policiesOf(service, frontends);
  const local = usesLocal ? usable.local : new Set<string>();
  const slots = yield* assignSlots({ cluster: usable.cluster, local }, previousSlots);
  const hasAffinity = service.spec?.sessionAffinity === 'ClientIP';
  const affinity = hasAffinity ? yield* affinityOf(service, port, frontends[0]?.family ?? 'IPv4', slots) : undefined;
  for (const frontend of frontends) {
    yield;
    const { family, policy, address, key } = frontend;
    const isNodePort = address === undefined;
    const reached = {
      cluster: policy === 'internal' && isInternalLocal ? slots.local : slots.cluster,
      local: slots.local,
    };
    const { number } = NFT_WORDS[family];
    if (frontend.isLoadBalancer) yield* builder.restrict(service, frontend);
    if ((policy === 'local' ? reached.local : reached.cluster).count === 0) {
      const map = isNodePort ? NAMES.unservedNodePorts : NAMES.unservedAddresses;
      builder.element(`${map}-${number}`, key, usable.hasAny ? 'drop' : `goto ${NAMES.reject}`);
    }
    if (reached.cluster.count === 0 && (policy !== 'local' || reached.local.count === 0)) continue;
    const map = `${isNodePort ? NAMES.nodePorts : NAMES.addresses}-${number}`;
    if (affinity !== undefined) {
      builder.element(map, key, `goto ${builder.chainWithAffinity(affinity, frontend, reached, node.podCidrs)}`);
      continue;
    }
    const chain = yield* balancing.chainFor(frontend, reached);
    builder.need(chain);
    builder.element(map, key, `goto ${chain.name}`);
    const used = new Set([reached.cluster, ...(policy === 'local' ? [reached.local] : [])].flatMap(slotsOf));
    for (const slot of used) {
      builder.element(slotMap(family, isNodePort, slot), key, slots.targets[slot] as string);
      if (slot % STEP_LENGTH === 0) yield;
    }
  }
  return slots;
}

/**
 * Returns the frontends of the port for the examination of stale flows; none if the protocol is not UDP. Source: CleanStaleEntries in
 * pkg/proxy/conntrack of v1.33 (behavior).
 */
function udpFrontends(
  port: ServicePort,
  frontends: readonly Frontend[],
  endpoints: readonly PortEndpoint[],
): UdpFrontend[] {
  if (port.protocol !== 'UDP') return [];
  // With publishNotReadyAddresses, an endpoint may be ready although it does not serve.
  const targets = new Set(endpoints.filter(({ ready, serving }) => ready || serving).map(({ target }) => target));
  return frontends.map(({ address, family }) => ({
    address,
    family,
    port: address === undefined ? (port.nodePort as number) : port.port,
    targets,
  }));
}

class PartBuilder {
  readonly #chains = new Map<string, Chain>();
  readonly #sets = new Map<string, NftSet>();
  readonly #elements = new Map<string, [string, string][]>();
  readonly #needs = new Map<string, SharedPart>();

  element(set: string, key: string, value: string): void {
    const elements = this.#elements.get(set);
    if (elements === undefined) this.#elements.set(set, [[key, value]]);
    else elements.push([key, value]);
  }

  need(shared: SharedPart): void {
    this.#needs.set(shared.name, shared);
  }

  /**
   * Restricts the frontend to the sources in loadBalancerSourceRanges. If all of them are of the other family, no source is allowed. Does
   * nothing if there are no valid ranges.
   */
  *restrict({ metadata, spec }: Service, { family, key }: Frontend): Generator<void, void> {
    const texts = spec?.loadBalancerSourceRanges ?? [];
    if (texts.length === 0) return;
    const { ip, number } = NFT_WORDS[family];
    const name = `services/sources-${number}-${hashOf(metadata.namespace, metadata.name)}`;
    // All frontends of a family share the chain: there may be thousands of frontends and of ranges.
    if (!this.#chains.has(name)) {
      const ranges: string[] = [];
      for (const [index, text] of texts.entries()) {
        if (index % STEP_LENGTH === STEP_LENGTH - 1) yield;
        const range = parseIpRange(text.trim());
        if (range !== undefined) ranges.push(formatIpRange(range));
      }
      if (ranges.length === 0) return;
      const own = [...new Set(ofFamily(ranges, family))];
      const rule = own.length === 0 ? 'drop' : `${ip} saddr != { ${own.join(', ')} } drop`;
      this.#chains.set(name, { name, rules: [rule] });
    }
    this.element(`${NAMES.restricted}-${number}`, key, `goto ${name}`);
  }

  chainWithAffinity(
    affinity: Affinity,
    frontend: Frontend,
    reached: Pick<Slots, 'cluster' | 'local'>,
    podCidrs: readonly string[],
  ): string {
    const { chain, chains, sets } = affinity.chainFor(frontend, reached, podCidrs);
    for (const each of chains) this.#chains.set(each.name, each);
    for (const each of sets) this.#sets.set(each.name, each);
    return chain;
  }

  result(): { part: Part; needs: SharedPart[] } {
    const needs = [...this.#needs.values()];
    return {
      part: {
        chains: [...this.#chains.values()],
        sets: [...this.#sets.values()],
        elements: [...this.#elements].map(([set, values]): Elements => ({ set, values })),
        needs: needs.map(({ name }) => name),
        // With the fallback, packets to the cluster IPs of the Service are dropped, like packets to any cluster IP that no Service has.
        fallback: {},
      },
      needs,
    };
  }
}
