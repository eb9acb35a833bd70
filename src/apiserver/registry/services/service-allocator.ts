/**
 * Allocates cluster IPs and node ports of Services.
 *
 * The allocations follow from the Services in the cache, event by event, so nothing can leak or drift. Only the addresses of
 * writes in progress are reserved separately, until the writes finish.
 *
 * Source: pkg/registry/core/service/storage, ipallocator and portallocator of v1.33 (behavior and wording); KEP-3070
 * (the lower part of the range is for addresses that users choose).
 */
import type { Service, ServiceSpec } from '../../../api/generated/types.ts';
import { type FieldError, invalid } from '../../../machinery/field-error.ts';
import type { KubeObject } from '../../../machinery/meta.ts';
import { internalError, invalidObject } from '../../../machinery/status.ts';
import { objectKey, resourcePrefix } from '../../cache/keys.ts';
import type { WatchCache } from '../../cache/watch-cache.ts';
import { addressAt, offsetOf, parseServiceCidr, type ServiceRange } from './service-range.ts';

const SERVICES_PREFIX = resourcePrefix('', 'services');
const FIRST_NODE_PORT = 30_000;
const LAST_NODE_PORT = 32_767;
const HEADLESS = 'None';

export interface ServiceAllocator {
  /** Fills in the Service's missing addresses and ports; throws 422 Invalid. Call the result once the write has finished. */
  admit(service: KubeObject, old: KubeObject | undefined): () => void;
}

type Spec = Partial<ServiceSpec>;

const specOf = (service: KubeObject): Spec => (service as Service).spec ?? {};
const needsClusterIp = (spec: Spec): boolean => spec.type !== 'ExternalName' && spec.clusterIP !== HEADLESS;
const needsNodePorts = (spec: Spec): boolean =>
  spec.type === 'NodePort' || (spec.type === 'LoadBalancer' && spec.allocateLoadBalancerNodePorts !== false);
const addressesOf = (spec: Spec): string[] =>
  [spec.clusterIP ?? '', ...(spec.clusterIPs ?? [])].filter((ip) => ip !== '' && ip !== HEADLESS);
/** The values that no other Service may use: `10.96.0.10`, `30080`. */
const usesOf = (service: KubeObject | undefined): string[] =>
  service === undefined
    ? []
    : [
        ...addressesOf(specOf(service)),
        ...(specOf(service).ports ?? []).flatMap(({ nodePort }) => (nodePort ? [String(nodePort)] : [])),
      ];

/** Returns a function that checks whether a Service other than the given one uses an address or node port. */
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
  cache: WatchCache,
  serviceCidr: string,
  randomBytes: (size: number) => Uint8Array,
): ServiceAllocator {
  const range = parseServiceCidr(serviceCidr);
  const usedByOthers = followUses(cache);
  const pending = new Set<string>();
  const random = (below: number): number => Buffer.from(randomBytes(4)).readUInt32BE() % below;

  return {
    admit(service, old) {
      const spec = (service as Service).spec;
      if (spec === undefined || spec.type === 'ExternalName') return () => {};
      const oldSpec = old === undefined ? {} : specOf(old);
      const isUsed = usedByOthers(service);
      const isTaken: IsTaken = (use) => isUsed(String(use)) || pending.has(String(use));
      const fail = (errors: FieldError[]) =>
        invalidObject({ group: '', kind: 'Service' }, service.metadata.name, errors);
      const reserved: string[] = [];
      const reserve = (use: string): void => {
        pending.add(use);
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
      return release;
    },
  };
}

/** Whether another Service, stored or being written, has the address or node port. */
type IsTaken = (use: string | number) => boolean;
type Fail = (errors: FieldError[]) => Error;

/** Only IPv4 is configured. A headless Service without a selector may have endpoints of both families. */
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

/** Sets clusterIP and clusterIPs; returns the address if it is newly allocated. */
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

/** Picks a random address of the upper part; if that is full, of the lower part. Skips those of `kubernetes` and the DNS. */
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

/** Sets the missing node ports; returns all node ports of the Service. */
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
