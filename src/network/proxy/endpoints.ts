/**
 * Finds the endpoints of a Service that get the traffic that arrives at this node.
 * Source: CategorizeEndpoints and the caches of Services and EndpointSlices in pkg/proxy of v1.33 (behavior).
 */
import { isIPv4 } from 'node:net';
import type { Endpoint, EndpointSlice, ServicePort } from '../../api/generated/types.ts';
import { canonicalIp, type IpFamily } from '../../machinery/ip.ts';
import { isPortNumber } from '../../machinery/names.ts';
import { sortInSteps } from './sort-in-steps.ts';

export interface PortEndpoint {
  /** The address and the port as the value of a map of nft(8), such as `10.244.0.7 . 8080`. */
  target: string;
  ready: boolean;
  serving: boolean;
  terminating: boolean;
  isLocal: boolean;
  /** Empty if the endpoint has no hints about zones. */
  zones: readonly string[];
}

export interface Place {
  nodeName: string;
  zone: string | undefined;
}

const SERVICE_NAME = 'kubernetes.io/service-name';

/** Returns `<namespace>/<name>` of the Service of a slice, in a list for an index; the list is empty if the slice names no Service. */
export function serviceOfSlice({ metadata }: EndpointSlice): readonly string[] {
  const name = metadata.labels?.[SERVICE_NAME];
  return name === undefined || name === '' ? [] : [`${metadata.namespace ?? ''}/${name}`];
}

/**
 * Returns the endpoints of a port of a Service, in no particular order. An endpoint in several slices is ready if one of them reports it as
 * ready. Reads at most `max` endpoints of slices, one slice in a step.
 */
export function* endpointsOf(
  port: ServicePort,
  family: IpFamily,
  slices: Iterable<EndpointSlice>,
  place: Place,
  max = Number.POSITIVE_INFINITY,
): Generator<void, PortEndpoint[]> {
  let left = max;
  const found = new Map<string, PortEndpoint>();
  for (const slice of slices) {
    const { addressType, endpoints } = slice;
    if (addressType !== family) continue;
    for (const number of numbersOf(slice).get(portKey(port)) ?? []) {
      for (const endpoint of endpoints ?? []) {
        if (left-- <= 0) return [...found.values()];
        // Clients must use the first address only: upstream leaves the meaning of further addresses undefined.
        const [text = ''] = endpoint.addresses;
        // An IPv4 address has only one form, so it needs no conversion.
        const address = isIPv4(text) ? text : canonicalIp(text);
        if (address === undefined) continue;
        const target = `${address} . ${number}`;
        if (found.get(target)?.ready !== true) found.set(target, { target, ...stateOf(endpoint, place) });
      }
      yield;
    }
  }
  return [...found.values()];
}

const portKey = ({ name, protocol }: { name?: string; protocol?: string }): string =>
  `${protocol || 'TCP'} ${name ?? ''}`;

/** The port numbers of a slice by portKey(). A slice may have thousands of ports, and is read for each port of its Service. */
const numbersBySlice = new WeakMap<EndpointSlice, Map<string, number[]>>();

/**
 * Returns the valid port numbers of the slice, by portKey(). Like upstream, the API accepts any number as a port of a slice, but the kernel
 * rejects rules with an invalid port.
 */
function numbersOf(slice: EndpointSlice): Map<string, number[]> {
  const known = numbersBySlice.get(slice);
  if (known !== undefined) return known;
  const numbers = new Map<string, number[]>();
  for (const port of slice.ports ?? []) {
    if (!isPortNumber(port.port)) continue;
    const key = portKey(port);
    const same = numbers.get(key);
    if (same === undefined) numbers.set(key, [port.port]);
    else same.push(port.port);
  }
  numbersBySlice.set(slice, numbers);
  return numbers;
}

function stateOf({ conditions, nodeName, hints }: Endpoint, place: Place): Omit<PortEndpoint, 'target'> {
  const ready = conditions?.ready ?? true;
  return {
    ready,
    serving: conditions?.serving ?? ready,
    terminating: conditions?.terminating ?? false,
    isLocal: nodeName === place.nodeName,
    zones: hints?.forZones?.map(({ name }) => name) ?? [],
  };
}

export interface UsableEndpoints {
  cluster: ReadonlySet<string>;
  local: ReadonlySet<string>;
  /** Whether any endpoint in the cluster is ready, or terminates but still serves. Traffic from this node need not reach this endpoint. */
  hasAny: boolean;
  isCut: boolean;
}

/**
 * Returns the endpoints for each traffic policy: the ready ones, or if there are none those that terminate but still serve. Hints about
 * zones apply to the policy Cluster if every ready endpoint has some and one of them names the zone of the node. Each policy gets at most
 * `max` endpoints, which do not depend on the order of `endpoints`.
 */
export function* usableEndpoints(
  endpoints: readonly PortEndpoint[],
  { zone }: Place,
  max = Number.POSITIVE_INFINITY,
): Generator<void, UsableEndpoints> {
  const ready = endpoints.filter((endpoint) => endpoint.ready);
  const leaving = endpoints.filter((endpoint) => !endpoint.ready && endpoint.serving && endpoint.terminating);
  const inZone = ready.filter(({ zones }) => zone !== undefined && zones.includes(zone));
  const hintsApply = inZone.length > 0 && ready.every(({ zones }) => zones.length > 0);
  const cluster = hintsApply ? inZone : orElse(ready, leaving);
  const isLocal = (endpoint: PortEndpoint): boolean => endpoint.isLocal;
  const local = orElse(ready.filter(isLocal), leaving.filter(isLocal));
  return {
    cluster: yield* targetsOf(cluster, max),
    local: yield* targetsOf(local, max),
    hasAny: ready.length + leaving.length > 0,
    isCut: Math.max(cluster.length, local.length) > max,
  };
}

const orElse = <T>(list: readonly T[], other: readonly T[]): readonly T[] => (list.length > 0 ? list : other);

function* targetsOf(endpoints: readonly PortEndpoint[], max: number): Generator<void, Set<string>> {
  const targets = endpoints.map(({ target }) => target);
  return new Set(targets.length > max ? (yield* sortInSteps(targets)).slice(0, max) : targets);
}
