/** Stores the Services, the ready endpoints and the namespaces for the zone, and finds them by name or address. */
import { addressKey, endpointLabel } from './addresses.ts';
import type { PortRecord, PutMessage, RecordKind, ServiceRecord, SliceRecord } from './protocol.ts';

/** An endpoint that has a reverse name. */
export interface NamedEndpoint {
  /** The addressKey() of the endpoint's address. */
  key: string;
  hostname: string;
  service: string;
  namespace: string;
  slice: string;
}

/** An endpoint of a Service, as found by the first label of its name. */
export interface LabelledEndpoint {
  ip: string;
  ports: readonly PortRecord[];
}

/** Access to the current Services, endpoints and namespaces. Keys are those of addressKey(). */
export interface ZoneData {
  /** The serial number of the zone, which changes when the content changes. */
  readonly serial: number;
  service(namespace: string, name: string): ServiceRecord | undefined;
  hasNamespace(namespace: string): boolean;
  /** Returns the Service with the cluster IP; undefined if there is none. */
  serviceAt(key: string): ServiceRecord | undefined;
  endpointsAt(key: string): Iterable<NamedEndpoint>;
  slices(namespace: string, service: string): Iterable<SliceRecord>;
  /** Returns the endpoints of the Service whose names begin with the label. The label is in lower case. */
  endpointsLabelled(namespace: string, service: string, label: string): Iterable<LabelledEndpoint>;
}

const NO_SLICES: ReadonlyMap<string, SliceRecord> = new Map();

/** Stores the records in memory, and changes them one by one. The time to read a record does not depend on the number of other records. */
export class StoredZone implements ZoneData {
  readonly #namespaces = new Set<string>();
  readonly #services = new Map<string, ServiceRecord>();
  /** Slices by the namespace and name of their Service, and then by their own name. */
  readonly #slices = new Map<string, Map<string, SliceRecord>>();
  /** The Service of each slice, by the namespace and name of the slice. */
  readonly #serviceOfSlice = new Map<string, string>();
  readonly #byClusterIp = new Map<string, ServiceRecord>();
  /** By addressKey(): the endpoints at the address, by namespace, slice and host name. */
  readonly #byEndpoint = new Map<string, Map<string, NamedEndpoint>>();
  /**
   * The addresses of each slice by the labels of their names. An entry is created when a slice is first searched for a label, because most
   * slices never are.
   */
  readonly #labelled = new WeakMap<SliceRecord, Map<string, string[]>>();
  #serial: number;

  /** Creates an empty zone. `nowSeconds`: the time in seconds since the epoch, which becomes the first serial. */
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

/** Returns the endpoints that have reverse names: those with a host name. */
const namedEndpoints = ({ namespace, name, service, endpoints }: SliceRecord): NamedEndpoint[] =>
  endpoints.flatMap(([address, hostname]) =>
    hostname === '' ? [] : [{ key: addressKey(address) ?? '', hostname, service, namespace, slice: name }],
  );

const idOf = ({ namespace, slice, hostname }: NamedEndpoint): string => `${namespace}/${slice}/${hostname}`;

/** Returns the addresses of the slice by the labels of their names, in lower case. */
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
