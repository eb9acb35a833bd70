/**
 * Answers DNS questions for cluster names from the current Services and endpoints.
 * Source: "Kubernetes DNS-Based Service Discovery" 1.1.0 and "DNS for Services and Pods" of v1.33. Where these documents leave a choice,
 * the answers equal the answers of CoreDNS with kubeadm's Corefile: for example, a Pod's name needs a namespace that exists, but not a Pod
 * that has the address (`pods insecure`).
 */
import { isIP } from 'node:net';
import { addressBytes, endpointLabel, reverseKey } from './addresses.ts';
import { TYPE } from './message.ts';
import type { PortRecord, ServiceRecord, SliceRecord } from './protocol.ts';
import type { ZoneData } from './zone-data.ts';

export interface Srv {
  priority: number;
  weight: number;
  port: number;
  target: string;
}

/** `name`: the owner of the record; absent: the name in the question. Names have no dot at the end. */
export type ZoneRecord = { name?: string } & (
  | { type: 'A' | 'AAAA' | 'CNAME' | 'NS' | 'PTR' | 'TXT'; data: string }
  | { type: 'SRV'; data: Srv }
  | { type: 'SOA'; data: { mname: string; rname: string; serial: number } }
);

export type ZoneAnswer =
  | { kind: 'records'; answers: ZoneRecord[]; additionals: ZoneRecord[] }
  /** The name exists, but has no records of the type that was asked for. */
  | { kind: 'noData' }
  | { kind: 'nxDomain' }
  /** For a Service of type ExternalName. */
  | { kind: 'alias'; answers: ZoneRecord[]; target: string }
  /** The name is neither a cluster name nor the reverse name of a Service or an endpoint, so the question must be forwarded. */
  | { kind: 'foreign' };

/** The maximum numbers of addresses and of SRV records in an answer. More records would not fit into a message. */
export interface MostRecords {
  addresses: number;
  services: number;
}

/**
 * How long clients may cache an answer. This is CoreDNS's default. kubeadm's Corefile has 30 s, which would keep the addresses of deleted
 * Pods of headless Services in use for longer.
 */
export const TTL_SECONDS = 5;
const MOST_NAMES = 100;
const SPEC_VERSION = '1.1.0';

/**
 * Answers a question for a name. `labels`: the labels of the name in lower case, first label first. `domain`: the cluster's domain in lower
 * case, such as cluster.local.
 */
export function answerQuestion(
  labels: readonly string[],
  type: number,
  domain: string,
  data: ZoneData,
  most: MostRecords,
): ZoneAnswer {
  if (labels.at(-1) === 'arpa') return reverseAnswer(labels.slice(0, -1), type, domain, data);
  const suffix = domain.split('.');
  const own = labels.slice(0, -suffix.length);
  if (labels.length < suffix.length || suffix.some((label, i) => label !== labels[own.length + i]))
    return { kind: 'foreign' };
  const [top, ...rest] = own.toReversed();
  if (top === undefined) return apexAnswer(type, domain, data);
  if (top === 'svc') return serviceAnswer(rest, type, domain, { data, most });
  if (top === 'pod') return podAnswer(rest, type, data);
  if (top === 'dns-version' && rest.length === 0) return ofType(type, [{ type: 'TXT', data: SPEC_VERSION }]);
  if (top === 'dns') return nameServerAnswer(rest, type, data);
  return { kind: 'nxDomain' };
}

const records = (answers: ZoneRecord[], additionals: ZoneRecord[] = []): ZoneAnswer => ({
  kind: 'records',
  answers,
  additionals,
});

function ofType(type: number, all: ZoneRecord[]): ZoneAnswer {
  const found = all.filter((record) => isOfType(type, record.type));
  return found.length === 0 ? { kind: 'noData' } : records(found);
}

const isOfType = (type: number, own: ZoneRecord['type']): boolean => type === TYPE.ANY || TYPE[own] === type;

const addressType = (ip: string): 'A' | 'AAAA' => (ip.includes(':') ? 'AAAA' : 'A');

const address = (ip: string, name?: string): ZoneRecord => ({
  ...(name === undefined ? {} : { name }),
  type: addressType(ip),
  data: ip,
});

const startOf = (zone: string, { serial }: ZoneData): ZoneRecord => ({
  name: zone,
  type: 'SOA',
  data: { mname: `ns.dns.${zone}`, rname: `hostmaster.${zone}`, serial },
});

/**
 * Returns the SOA record of the zone of the name. For a reverse name, this is in-addr.arpa or ip6.arpa, because resolvers ignore the record
 * of a zone that does not contain the name.
 */
export const startOfAuthority = (labels: readonly string[], domain: string, data: ZoneData): ZoneRecord =>
  startOf(labels.at(-1) === 'arpa' ? labels.slice(-2).join('.') : domain, data);

const apexAnswer = (type: number, domain: string, data: ZoneData): ZoneAnswer =>
  ofType(type, [startOf(domain, data), { name: domain, type: 'NS', data: `ns.dns.${domain}` }]);

/** The name server ns.dns has the addresses of the Service kube-dns. */
function nameServerAnswer(labels: string[], type: number, data: ZoneData): ZoneAnswer {
  if (labels.length === 0) return { kind: 'noData' };
  if (labels.length > 1 || labels[0] !== 'ns') return { kind: 'nxDomain' };
  return ofType(
    type,
    (data.service('kube-system', 'kube-dns')?.ips ?? []).map((ip) => address(ip)),
  );
}

/** `labels`: the labels before `svc`, last label first: namespace, Service, and either protocol and port or an endpoint. */
function serviceAnswer(
  labels: string[],
  type: number,
  domain: string,
  { data, most }: Pick<Found, 'data' | 'most'>,
): ZoneAnswer {
  const [namespace, name, ...rest] = labels;
  if (namespace === undefined) return { kind: 'noData' };
  if (name === undefined) return { kind: data.hasNamespace(namespace) ? 'noData' : 'nxDomain' };
  const service = data.service(namespace, name);
  if (service === undefined || rest.length > 2) return { kind: 'nxDomain' };
  const { externalName } = service;
  if (externalName !== undefined) {
    // Names that look like an address are not resolved. Source: "DNS for Services and Pods".
    if (externalName === '' || rest.length > 0 || isIP(externalName) !== 0) return { kind: 'nxDomain' };
    return { kind: 'alias', answers: [{ type: 'CNAME', data: externalName }], target: externalName };
  }
  const found: Found = { data, most, service, canonical: `${name}.${namespace}.svc.${domain}` };
  const [first, second] = rest;
  if (first === undefined) return wholeService(found, type);
  if (first.startsWith('_'))
    return second === undefined || second.startsWith('_') ? ports(found, first, second, type) : NONE;
  return second === undefined ? endpoint(found, first, type) : NONE;
}

const NONE: ZoneAnswer = { kind: 'nxDomain' };

interface Found {
  most: MostRecords;
  data: ZoneData;
  service: ServiceRecord;
  canonical: string;
}

const isHeadless = ({ ips }: ServiceRecord): boolean => ips.length === 0;

const slicesOf = ({ data, service }: Found): Iterable<SliceRecord> => data.slices(service.namespace, service.name);

/** An address of either family counts, whatever type the question asks for. */
function hasAddress(found: Found): boolean {
  if (!isHeadless(found.service)) return true;
  for (const { endpoints } of slicesOf(found)) if (endpoints.length > 0) return true;
  return false;
}

function addressesOf(found: Found, type: number): string[] {
  if (!isHeadless(found.service)) return found.service.ips;
  const ips = new Set<string>();
  for (const { endpoints } of slicesOf(found)) {
    // All endpoints of a slice have addresses of the same family.
    if (!isOfType(type, addressType(endpoints[0]?.[0] ?? ''))) continue;
    for (const [ip] of endpoints) {
      ips.add(ip);
      if (ips.size >= found.most.addresses) return [...ips];
    }
  }
  return [...ips];
}

function wholeService(found: Found, type: number): ZoneAnswer {
  if (!hasAddress(found)) return NONE;
  if (type === TYPE.SRV)
    return (
      srvAnswer(
        found.most.services,
        offersOf(found, () => true),
      ) ?? { kind: 'noData' }
    );
  return ofType(
    type,
    addressesOf(found, type).map((ip) => address(ip)),
  );
}

/** Answers questions for names such as _port._protocol.service.namespace.svc. `port` is undefined if its label is missing. */
function ports(found: Found, protocol: string, port: string | undefined, type: number): ZoneAnswer {
  const isAsked = port !== undefined && isOfType(type, 'SRV');
  const offers = offersOf(
    found,
    (each) =>
      `_${each.protocol}` === protocol && (port === undefined || (each.name !== '' && `_${each.name}` === port)),
  );
  const answer = srvAnswer(isAsked ? found.most.services : 1, offers);
  if (answer === undefined) return NONE;
  return isAsked ? answer : { kind: 'noData' };
}

interface Offer {
  target: string;
  ips: readonly string[];
  ports: readonly PortRecord[];
}

function* offersOf(found: Found, matches: (port: PortRecord) => boolean): Generator<Offer> {
  const { service, canonical } = found;
  if (!isHeadless(service)) {
    yield { target: canonical, ips: service.ips, ports: service.ports.filter(matches) };
    return;
  }
  for (const { endpoints, ports: offered } of slicesOf(found)) {
    const fitting = offered.filter(matches);
    if (fitting.length === 0) continue;
    for (const [ip, hostname] of endpoints)
      yield { target: `${endpointLabel(ip, hostname)}.${canonical}`, ips: [ip], ports: fitting };
  }
}

/** Returns at most `most` SRV records without duplicates (endpoints may share a name or address); undefined if there are none. */
function srvAnswer(most: number, offers: Iterable<Offer>): ZoneAnswer | undefined {
  const answers = new Map<string, ZoneRecord>();
  const targets = new Map<string, ZoneRecord>();
  for (const { target, ips, ports: offered } of offers) {
    const fitting = offered.slice(0, most - answers.size);
    for (const { port } of fitting)
      answers.set(`${port} ${target}`, { type: 'SRV', data: { priority: 0, weight: 100, port, target } });
    if (fitting.length > 0) for (const ip of ips) targets.set(`${ip} ${target}`, address(ip, target));
    if (answers.size >= most) break;
  }
  return answers.size === 0 ? undefined : records([...answers.values()], [...targets.values()]);
}

/** Answers questions for names such as hostname.service.namespace.svc or 10-0-0-7.service.namespace.svc. */
function endpoint({ data, service, canonical, most }: Found, label: string, type: number): ZoneAnswer {
  const matching = [...data.endpointsLabelled(service.namespace, service.name, label)];
  if (matching.length === 0) return NONE;
  if (type === TYPE.SRV) {
    const target = `${label}.${canonical}`;
    const offers = matching.map(({ ip, ports: offered }) => ({ target, ips: [ip], ports: offered }));
    return srvAnswer(most.services, offers) ?? { kind: 'noData' };
  }
  const ips = new Set(matching.map(({ ip }) => ip).filter((ip) => isOfType(type, addressType(ip))));
  return ofType(
    type,
    [...ips].slice(0, most.addresses).map((ip) => address(ip)),
  );
}

/** Answers questions for names such as 10-0-0-7.namespace.pod. The answer is the address that the name contains. */
function podAnswer(labels: string[], type: number, data: ZoneData): ZoneAnswer {
  const [namespace, pod] = labels;
  if (namespace === undefined) return { kind: 'noData' };
  if (!data.hasNamespace(namespace) || labels.length > 2) return NONE;
  if (pod === undefined) return { kind: 'noData' };
  const text = pod.replaceAll('-', /^\d+-\d+-\d+-\d+$/.test(pod) ? '.' : ':');
  return addressBytes(text) === undefined ? NONE : ofType(type, [address(text)]);
}

/** Answers questions for names such as 7.0.0.10.in-addr.arpa. `labels`: the labels before `arpa`. */
function reverseAnswer(labels: readonly string[], type: number, domain: string, data: ZoneData): ZoneAnswer {
  const key = reverseKey(labels);
  if (key === undefined) return { kind: 'foreign' };
  const names = reverseNames(key, data);
  if (names.size === 0) return { kind: 'foreign' };
  return ofType(
    type,
    [...names].map((name) => ({ type: 'PTR', data: `${name}.svc.${domain}` })),
  );
}

function reverseNames(key: string, data: ZoneData): Set<string> {
  const service = data.serviceAt(key);
  if (service !== undefined) return new Set([`${service.name}.${service.namespace}`]);
  const names = new Set<string>();
  for (const { hostname, service: name, namespace } of data.endpointsAt(key)) {
    names.add(`${hostname}.${name}.${namespace}`);
    if (names.size === MOST_NAMES) break;
  }
  return names;
}
