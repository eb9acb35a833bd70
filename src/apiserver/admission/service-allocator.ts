/**
 * Allocates the cluster IPs and node ports of Services.
 *
 * The allocator counts the addresses and ports in use from the Services in the cache and from each change of a Service, so the
 * counts always match the cached Services. Addresses and ports of writes in progress are reserved separately until the cache
 * contains the writes.
 *
 * Source: pkg/registry/core/service/storage, ipallocator and portallocator of v1.33 (behavior and wording); KEP-3070 (the lower
 * part of the range is for addresses that users choose).
 */
import type { Service, ServiceSpec } from '../../api/generated/types.ts';
import { type FieldError, invalid } from '../../machinery/field-error.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { internalError, invalidObject } from '../../machinery/status.ts';
import { objectKey, resourcePrefix } from '../cache/keys.ts';
import type { WatchCache } from '../cache/watch-cache.ts';
import { whenCurrent } from '../registry/reads/freshness.ts';
import type { AdmissionServices } from './plugin.ts';
import { addressAt, offsetOf, parseServiceCidr, type ServiceRange } from './service-range.ts';

const SERVICES_PREFIX = resourcePrefix('', 'services');
const FIRST_NODE_PORT = 30_000;
const LAST_NODE_PORT = 32_767;
const HEADLESS = 'None';

export interface ServiceAllocator {
  /**
   * Sets the missing IP families, cluster IPs and node ports in the Service, and reserves the addresses and ports. `old` is the stored
   * Service in an update, whose cluster IP and node ports are kept; undefined in a create. Returns a function to call
   * when the write has finished: the reservation then ends as soon as the cache contains the write. Does nothing for the type
   * ExternalName or without a spec. Throws 422 Invalid if a requested address or port is invalid or in use, or if a requested IP family
   * is not configured, and 500 InternalError if no address or port is free.
   */
  admit(service: KubeObject, old: KubeObject | undefined): () => void;
}

type Spec = Partial<ServiceSpec>;

const specOf = (service: KubeObject): Spec => (service as Service).spec ?? {};
const needsClusterIp = (spec: Spec): boolean => spec.type !== 'ExternalName' && spec.clusterIP !== HEADLESS;
const needsNodePorts = (spec: Spec): boolean =>
  spec.type === 'NodePort' || (spec.type === 'LoadBalancer' && spec.allocateLoadBalancerNodePorts !== false);
const addressesOf = (spec: Spec): string[] =>
  [spec.clusterIP ?? '', ...(spec.clusterIPs ?? [])].filter((ip) => ip !== '' && ip !== HEADLESS);
/** Returns the cluster IPs and node ports of the Service, such as `10.96.0.10` and `30080`. No other Service may use them. */
const usesOf = (service: KubeObject | undefined): string[] =>
  service === undefined
    ? []
    : [
        ...addressesOf(specOf(service)),
        ...(specOf(service).ports ?? []).flatMap(({ nodePort }) => (nodePort ? [String(nodePort)] : [])),
      ];

/**
 * Counts how many Services in the cache use each address and node port. The returned function takes a Service and returns a
 * predicate, which returns whether any other Service uses an address or node port.
 */
function followUses(cache: WatchCache): (service: KubeObject) => (use: string) => boolean {
  const counts = new Map<string, number>();
  const change = (service: KubeObject | undefined, by: 1 | -1): void => {
    for (const use of usesOf(service)) {
      const count = (counts.get(use) ?? 0) + by;
      if (count === 0) counts.delete(use);
      else counts.set(use, count);
    }
  };
  for (const service of cache.list(SERVICES_PREFIX)) change(service, 1);
  cache.subscribe(SERVICES_PREFIX, undefined, cache.revision(), ({ type, object, previous }) => {
    change(previous, -1);
    if (type !== 'DELETED') change(object, 1);
  });
  return ({ metadata: { namespace, name } }) => {
    const own = Map.groupBy(usesOf(cache.get(objectKey(SERVICES_PREFIX, namespace, name))), (use) => use);
    return (use) => (counts.get(use) ?? 0) > (own.get(use)?.length ?? 0);
  };
}

export function createServiceAllocator(
  { cache, store }: Pick<AdmissionServices, 'cache' | 'store'>,
  serviceCidr: string,
  randomBytes: (size: number) => Uint8Array,
): ServiceAllocator {
  const range = parseServiceCidr(serviceCidr);
  const usedByOthers = followUses(cache);
  const pending = createReservations();
  const random = (below: number): number => Buffer.from(randomBytes(4)).readUInt32BE() % below;

  return {
    admit(service, old) {
      const spec = (service as Service).spec;
      if (spec === undefined || spec.type === 'ExternalName') return () => {};
      const oldSpec = old === undefined ? {} : specOf(old);
      const isUsed = usedByOthers(service);
      const owner = objectKey(SERVICES_PREFIX, service.metadata.namespace, service.metadata.name);
      const isTaken: IsTaken = (use) => isUsed(String(use)) || pending.isOfOther(String(use), owner);
      const fail = (errors: FieldError[]) =>
        invalidObject({ group: '', kind: 'Service' }, service.metadata.name, errors);
      const reserved: string[] = [];
      const reserve = (use: string): void => {
        pending.add(use, owner);
        reserved.push(use);
      };
      const release = (): void => {
        for (const use of reserved) pending.delete(use);
      };
      try {
        fillFamilies(spec, oldSpec, fail);
        const address = assignAddress(spec, oldSpec, { range, isTaken, random, fail });
        if (address !== undefined) reserve(address);
        for (const port of assignNodePorts(spec, oldSpec, isTaken, random, fail)) reserve(String(port));
      } catch (error) {
        release();
        throw error;
      }
      return () => whenCurrent({ cache, store }, release);
    },
  };
}

/** The addresses and ports of writes in progress, each with the key of the Service that is written. */
interface Reservations {
  /** Several writes of one Service may reserve the same address or port. */
  add(use: string, owner: string): void;
  delete(use: string): void;
  /** Whether a write of another Service has reserved the address or port. */
  isOfOther(use: string, owner: string): boolean;
}

function createReservations(): Reservations {
  const reserved = new Map<string, { owner: string; writes: number }>();
  return {
    add(use, owner) {
      const { writes } = reserved.get(use) ?? { writes: 0 };
      reserved.set(use, { owner, writes: writes + 1 });
    },
    delete(use) {
      const entry = reserved.get(use);
      if (entry === undefined) return;
      if (entry.writes === 1) reserved.delete(use);
      else entry.writes -= 1;
    },
    isOfOther(use, owner) {
      const entry = reserved.get(use);
      return entry !== undefined && entry.owner !== owner;
    },
  };
}

/** Returns whether another Service, stored or being written, has the address or node port. */
type IsTaken = (use: string | number) => boolean;
type Fail = (errors: FieldError[]) => Error;

/**
 * Sets the missing ipFamilyPolicy and ipFamilies. Throws 422 Invalid if the Service requires IPv6 or dual-stack, because only IPv4
 * is configured. A headless Service without a selector may have both families, because users create its endpoints.
 */
function fillFamilies(spec: ServiceSpec, old: Spec, fail: Fail): void {
  const open = spec.clusterIP === HEADLESS && Object.keys(spec.selector ?? {}).length === 0;
  spec.ipFamilyPolicy ??= old.ipFamilyPolicy ?? (open ? 'RequireDualStack' : 'SingleStack');
  if (open) {
    spec.ipFamilies ??= spec.ipFamilyPolicy === 'SingleStack' ? ['IPv4'] : ['IPv4', 'IPv6'];
    return;
  }
  const errors: FieldError[] = [];
  if (spec.ipFamilyPolicy === 'RequireDualStack') {
    const text = 'this cluster is not configured for dual-stack services';
    errors.push(invalid('spec.ipFamilyPolicy', spec.ipFamilyPolicy, text));
  }
  spec.ipFamilies?.forEach((family, index) => {
    if (family !== 'IPv4') errors.push(invalid(`spec.ipFamilies[${index}]`, family, 'not configured on this cluster'));
  });
  if (errors.length > 0) throw fail(errors);
  if (!spec.ipFamilies?.length) spec.ipFamilies = ['IPv4'];
}

interface AddressChoice {
  range: ServiceRange;
  isTaken: IsTaken;
  random: (below: number) => number;
  fail: Fail;
}

/** Sets clusterIP and clusterIPs. Returns the address if it is newly allocated; otherwise undefined. */
function assignAddress(spec: ServiceSpec, old: Spec, choice: AddressChoice): string | undefined {
  const requested = spec.clusterIP || spec.clusterIPs?.[0] || '';
  if (requested === HEADLESS) {
    spec.clusterIP = HEADLESS;
    spec.clusterIPs = [HEADLESS];
    return undefined;
  }
  const kept = needsClusterIp(old) ? (old.clusterIP ?? '') : '';
  const address = requested || kept || freeAddress(choice);
  if (requested !== '' && requested !== kept) checkAddress(requested, spec, choice);
  spec.clusterIP = address;
  spec.clusterIPs = [address];
  return address === kept ? undefined : address;
}

function checkAddress(address: string, spec: ServiceSpec, { range, isTaken, fail }: AddressChoice): void {
  const shown = spec.clusterIPs?.length ? spec.clusterIPs : [address];
  const refuse = (cause: string) =>
    fail([invalid('spec.clusterIPs', shown, `failed to allocate IP ${address}: ${cause}`)]);
  if (offsetOf(range, address) === undefined) {
    throw refuse(`the provided IP (${address}) is not in the valid range. The range of valid IPs is ${range.cidr}`);
  }
  if (isTaken(address)) throw refuse('provided IP is already allocated');
}

/**
 * Returns a random free address from the upper part of the range, or from the lower part if the upper part is full. Skips the
 * reserved addresses of the Service `kubernetes` and the DNS Service. Throws 500 InternalError if the range is full.
 */
function freeAddress({ range, isTaken, random }: AddressChoice): string {
  const search = (from: number, size: number): string | undefined => {
    const start = size > 0 ? random(size) : 0;
    for (let step = 0; step < size; step++) {
      const offset = from + ((start + step) % size);
      const address = addressAt(range, offset);
      if (!isTaken(address) && !range.reservedOffsets.has(offset)) return address;
    }
    return undefined;
  };
  const upper = range.lastOffset - range.lowerSize;
  const address = search(1 + range.lowerSize, upper) ?? search(1, range.lowerSize);
  if (address === undefined) throw internalError('failed to allocate a serviceIP: range is full');
  return address;
}

/** Sets the missing node ports. Returns all node ports of the Service; an empty list if the type of the Service needs none. */
function assignNodePorts(
  spec: ServiceSpec,
  old: Spec,
  isTaken: IsTaken,
  random: (below: number) => number,
  fail: Fail,
): number[] {
  if (!needsNodePorts(spec)) return [];
  const kept = new Map((old.ports ?? []).map((port) => [`${port.protocol}/${port.port}`, port.nodePort]));
  const own = new Set<number>();
  spec.ports?.forEach((port, index) => {
    const requested = port.nodePort || kept.get(`${port.protocol}/${port.port}`);
    if (requested && !own.has(requested)) checkNodePort(requested, `spec.ports[${index}].nodePort`, isTaken, fail);
    port.nodePort = requested || freeNodePort(isTaken, own, random);
    own.add(port.nodePort);
  });
  return [...own];
}

function checkNodePort(port: number, field: string, isTaken: IsTaken, fail: Fail): void {
  if (port < FIRST_NODE_PORT || port > LAST_NODE_PORT) {
    const range = `${FIRST_NODE_PORT}-${LAST_NODE_PORT}`;
    throw fail([invalid(field, port, `provided port is not in the valid range. The range of valid ports is ${range}`)]);
  }
  if (isTaken(port)) throw fail([invalid(field, port, 'provided port is already allocated')]);
}

function freeNodePort(isTaken: IsTaken, own: ReadonlySet<number>, random: (below: number) => number): number {
  const size = LAST_NODE_PORT - FIRST_NODE_PORT + 1;
  const start = random(size);
  for (let step = 0; step < size; step++) {
    const port = FIRST_NODE_PORT + ((start + step) % size);
    if (!isTaken(port) && !own.has(port)) return port;
  }
  throw internalError('failed to allocate a nodePort: range is full');
}
