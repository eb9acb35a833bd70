/**
 * Tracks the cluster IPs and node ports in use by Services, and the host ports of Pods, so that an allocation need not list all objects.
 */
import { hostPortsOf } from '../../../api/core/v1/pod/host-ports.ts';
import { hasEnded } from '../../../api/core/v1/pod/status/final-phase.ts';
import type { Pod, Service, ServiceSpec } from '../../../api/generated/types.ts';
import type { FieldError } from '../../../machinery/field-error.ts';
import { canonicalIp } from '../../../machinery/ip.ts';
import type { KubeObject } from '../../../machinery/meta.ts';
import { invalidObject } from '../../../machinery/status.ts';
import { objectKey, resourcePrefix } from '../../cache/keys.ts';
import type { WatchCache } from '../../cache/watch-cache.ts';

export const SERVICES_PREFIX = resourcePrefix('', 'services');
const PODS_PREFIX = resourcePrefix('', 'pods');

export const specOf = (service: KubeObject | undefined): ServiceSpec => (service as Service | undefined)?.spec ?? {};

export const invalidService = ({ metadata }: KubeObject, errors: FieldError[]) =>
  invalidObject({ group: '', kind: 'Service' }, metadata.name, errors);

/** Returns the cluster IPs in canonical form; an empty list if the Service is headless or of type ExternalName. */
export const addressesOf = ({ type, clusterIP = '', clusterIPs = [] }: ServiceSpec): string[] =>
  type === 'ExternalName' ? [] : [...new Set([clusterIP, ...clusterIPs].flatMap((text) => canonicalIp(text) ?? []))];

export const nodePortsOf = ({ ports = [], healthCheckNodePort }: ServiceSpec): number[] => [
  ...new Set([...ports.map(({ nodePort }) => nodePort), healthCheckNodePort].flatMap((port) => port || [])),
];

/** Returns cluster IPs and node ports, such as `10.96.0.10` and `30080`. */
const usesOf = (service: KubeObject | undefined): string[] => {
  const spec = specOf(service);
  return [...addressesOf(spec), ...nodePortsOf(spec).map(String)];
};

class Counts<T> {
  readonly #counts = new Map<T, number>();

  add(value: T, by: 1 | -1): void {
    const count = this.of(value) + by;
    if (count === 0) this.#counts.delete(value);
    else this.#counts.set(value, count);
  }

  of(value: T): number {
    return this.#counts.get(value) ?? 0;
  }
}

/** Calls `change` with 1 for each new state of an object, and with -1 for the previous state, which is undefined for a new object. */
function follow(cache: WatchCache, prefix: string, change: (object: KubeObject | undefined, by: 1 | -1) => void): void {
  for (const object of cache.list(prefix)) change(object, 1);
  cache.subscribe(prefix, undefined, cache.revision(), ({ type, object, previous }) => {
    change(previous, -1);
    if (type !== 'DELETED') change(object, 1);
  });
}

/**
 * Returns a function that tests whether a Pod that has not ended has the host port. Counts Pods from its first call on, because clusters
 * without node ports need no counts and may have many Pods.
 */
export function followHostPorts(cache: WatchCache): (port: number) => boolean {
  let counts: Counts<number> | undefined;
  const count = (): Counts<number> => {
    const all = new Counts<number>();
    follow(cache, PODS_PREFIX, (pod, by) => {
      if (pod === undefined || hasEnded(pod as Pod)) return;
      for (const { hostPort = 0 } of hostPortsOf(pod as Pod)) all.add(hostPort, by);
    });
    return all;
  };
  return (port) => {
    counts ??= count();
    return counts.of(port) > 0;
  };
}

/** Returns a function that takes a Service, and returns a test whether another Service has an address or node port. */
export function followUses(cache: WatchCache): (service: KubeObject) => (use: string) => boolean {
  const counts = new Counts<string>();
  follow(cache, SERVICES_PREFIX, (service, by) => {
    for (const use of usesOf(service)) counts.add(use, by);
  });
  return ({ metadata: { namespace, name } }) => {
    const own = new Set(usesOf(cache.get(objectKey(SERVICES_PREFIX, namespace, name))));
    return (use) => counts.of(use) > (own.has(use) ? 1 : 0);
  };
}

/** The addresses and ports of writes in progress, each with the key of the Service that is written. */
export interface Reservations {
  /** Several writes of one Service may reserve the same address or port. */
  add(use: string, owner: string): void;
  delete(use: string): void;
  isOfOther(use: string, owner: string): boolean;
}

export function createReservations(): Reservations {
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
