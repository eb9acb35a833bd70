import { addressKey, endpointLabel } from './addresses.ts';
import type { PortRecord, PutMessage, RecordKind, ServiceRecord, SliceRecord } from './protocol.ts';

export interface NamedEndpoint {
  /** See addressKey(). */
  key: string;
  hostname: string;
  service: string;
  namespace: string;
  slice: string;
}

export interface LabelledEndpoint {
  ip: string;
  ports: readonly PortRecord[];
}

/** Keys are results of addressKey(). */
export interface ZoneData {
  /** The serial number of the zone, which grows when the content changes. */
  readonly serial: number;
  service(namespace: string, name: string): ServiceRecord | undefined;
  hasNamespace(namespace: string): boolean;
  serviceAt(key: string): ServiceRecord | undefined;
  endpointsAt(key: string): Iterable<NamedEndpoint>;
  slices(namespace: string, service: string): Iterable<SliceRecord>;
  /** `label`: the first label of the endpoint's name, in lower case. */
  endpointsLabelled(namespace: string, service: string, label: string): Iterable<LabelledEndpoint>;
}

const NO_SLICES: ReadonlyMap<string, SliceRecord> = new Map();

/** The time to read a record does not depend on the number of other records. */
export class StoredZone implements ZoneData {
  readonly #namespaces = new Set<string>();
  readonly #services = new Map<string, ServiceRecord>();
  /** By the namespace and name of the Service, and then by the name of the slice. */
  readonly #slices = new Map<string, Map<string, SliceRecord>>();
  /** By the namespace and name of the slice. */
  readonly #serviceOfSlice = new Map<string, string>();
  readonly #byClusterIp = new Map<string, ServiceRecord>();
  /** The outer key is an addressKey(); the inner key consists of namespace, slice and host name. */
  readonly #byEndpoint = new Map<string, Map<string, NamedEndpoint>>();
  /** Created on demand, because most slices are never searched for a label. */
  readonly #labelled = new WeakMap<SliceRecord, Map<string, string[]>>();
  #serial: number;

  /** `nowSeconds`: the first serial, which is the time since the epoch or a greater number. */
  constructor(nowSeconds: number) {
    this.#serial = nowSeconds % 2 ** 32;
  }

  get serial(): number {
    return this.#serial;
  }

  service(namespace: string, name: string): ServiceRecord | undefined {
    return this.#services.get(`${namespace}/${name}`);
  }

  hasNamespace(namespace: string): boolean {
    return this.#namespaces.has(namespace);
  }

  serviceAt(key: string): ServiceRecord | undefined {
    return this.#byClusterIp.get(key);
  }

  endpointsAt(key: string): Iterable<NamedEndpoint> {
    return this.#byEndpoint.get(key)?.values() ?? [];
  }

  slices(namespace: string, service: string): Iterable<SliceRecord> {
    return (this.#slices.get(`${namespace}/${service}`) ?? NO_SLICES).values();
  }

  *endpointsLabelled(namespace: string, service: string, label: string): Generator<LabelledEndpoint> {
    for (const slice of this.slices(namespace, service)) {
      const known = this.#labelled.get(slice) ?? addressesByLabel(slice);
      this.#labelled.set(slice, known);
      for (const ip of known.get(label) ?? []) yield { ip, ports: slice.ports };
    }
  }

  put(message: PutMessage): void {
    this.#serial = (this.#serial + 1) % 2 ** 32;
    if (message.kind === 'namespace') this.#namespaces.add(message.record.name);
    else if (message.kind === 'service') this.#putService(message.record);
    else this.#putSlice(message.record);
  }

  remove(kind: RecordKind, namespace: string, name: string): void {
    this.#serial = (this.#serial + 1) % 2 ** 32;
    if (kind === 'namespace') this.#namespaces.delete(name);
    else if (kind === 'service') this.#removeService(`${namespace}/${name}`);
    else this.#removeSlice(namespace, name);
  }

  #putService(record: ServiceRecord): void {
    const name = `${record.namespace}/${record.name}`;
    this.#removeService(name);
    this.#services.set(name, record);
    for (const ip of record.ips) this.#byClusterIp.set(addressKey(ip) ?? '', record);
  }

  #removeService(name: string): void {
    const known = this.#services.get(name);
    if (known === undefined) return;
    this.#services.delete(name);
    for (const ip of known.ips) {
      const key = addressKey(ip) ?? '';
      // The address may already belong to another Service, whose change was reported first.
      if (this.#byClusterIp.get(key) === known) this.#byClusterIp.delete(key);
    }
  }

  #putSlice(record: SliceRecord): void {
    const { namespace, name, service } = record;
    this.#removeSlice(namespace, name);
    const owner = `${namespace}/${service}`;
    this.#serviceOfSlice.set(`${namespace}/${name}`, owner);
    const slices = this.#slices.get(owner) ?? new Map<string, SliceRecord>();
    this.#slices.set(owner, slices.set(name, record));
    for (const endpoint of namedEndpoints(record)) {
      const known = this.#byEndpoint.get(endpoint.key) ?? new Map<string, NamedEndpoint>();
      this.#byEndpoint.set(endpoint.key, known.set(idOf(endpoint), endpoint));
    }
  }

  #removeSlice(namespace: string, name: string): void {
    const owner = this.#serviceOfSlice.get(`${namespace}/${name}`);
    if (owner === undefined) return;
    this.#serviceOfSlice.delete(`${namespace}/${name}`);
    const slices = this.#slices.get(owner);
    const known = slices?.get(name);
    slices?.delete(name);
    if (slices?.size === 0) this.#slices.delete(owner);
    for (const endpoint of known === undefined ? [] : namedEndpoints(known)) {
      const named = this.#byEndpoint.get(endpoint.key);
      named?.delete(idOf(endpoint));
      if (named?.size === 0) this.#byEndpoint.delete(endpoint.key);
    }
  }
}

/** Only endpoints with a host name have reverse names. */
const namedEndpoints = ({ namespace, name, service, endpoints }: SliceRecord): NamedEndpoint[] =>
  endpoints.flatMap(([address, hostname]) =>
    hostname === '' ? [] : [{ key: addressKey(address) ?? '', hostname, service, namespace, slice: name }],
  );

const idOf = ({ namespace, slice, hostname }: NamedEndpoint): string => `${namespace}/${slice}/${hostname}`;

function addressesByLabel({ endpoints }: SliceRecord): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const [ip, hostname] of endpoints) {
    const label = endpointLabel(ip, hostname).toLowerCase();
    const known = found.get(label);
    if (known === undefined) found.set(label, [ip]);
    else known.push(ip);
  }
  return found;
}
