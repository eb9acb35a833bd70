/**
 * Answers DNS questions for cluster names from the current Services, without side effects.
 * Source: "Kubernetes DNS-Based Service Discovery" 1.1.0 and "DNS for Services and Pods" of v1.33. Where these documents leave a
 * choice, the answers are the same as CoreDNS's. For example, the name of a headless Service without endpoints does not exist;
 * lifepod has no endpoints, so this applies to every headless Service.
 */
import type { SrvAnswer, StringAnswer, TxtAnswer } from 'dns-packet';
import type { Service } from '../api/generated/types.ts';
import { formatIpv4, parseIpv4 } from '../machinery/cidr.ts';

export type ZoneRecord = StringAnswer | SrvAnswer | TxtAnswer;

export type ZoneAnswer =
  | { kind: 'records'; answers: ZoneRecord[]; additionals: ZoneRecord[] }
  /** The name exists, but has no records of this type. */
  | { kind: 'noData' }
  | { kind: 'nxDomain' }
  /** The name belongs to a Service of type ExternalName: it is an alias (CNAME) of `target`. */
  | { kind: 'alias'; answers: ZoneRecord[]; target: string }
  /** The name is neither a cluster name nor the reverse name of a Service's address, so the question must be forwarded. */
  | { kind: 'foreign' };

/** Access to the current Services. */
export interface ZoneServices {
  get(namespace: string, name: string): Service | undefined;
  hasNamespace(namespace: string): boolean;
  byClusterIp(ip: string): Service | undefined;
}

/** How long clients may cache an answer. The value is the default of CoreDNS for cluster names. */
export const TTL_SECONDS = 5;
/** Maximum number of SRV records in an answer: more than fit into a DNS message of 64 KiB, so that the response is truncated anyway. */
const MAX_RECORDS = 4096;
const SPEC_VERSION = '1.1.0';
const REVERSE = '.in-addr.arpa';

/**
 * Answers one question. `name`: as in the question, in upper or lower case. `zone`: the cluster's domain in lower case, such as
 * cluster.local.
 */
export function answerQuestion(name: string, type: string, zone: string, services: ZoneServices): ZoneAnswer {
  const lower = name.toLowerCase().replace(/\.$/, '');
  if (lower.endsWith(REVERSE)) return reverseAnswer(name, lower, type, zone, services);
  if (lower === zone) return { kind: 'noData' };
  if (!lower.endsWith(`.${zone}`)) return { kind: 'foreign' };
  const labels = lower
    .slice(0, -zone.length - 1)
    .split('.')
    .reverse();
  const [top, ...rest] = labels;
  if (top === 'svc') return serviceAnswer(name, rest, type, zone, services);
  if (top === 'pod') return podAnswer(name, rest, type, services);
  if (top === 'dns-version' && rest.length === 0) {
    return type === 'TXT' || type === 'ANY'
      ? records([{ name, type: 'TXT', ttl: TTL_SECONDS, data: SPEC_VERSION }])
      : { kind: 'noData' };
  }
  return { kind: 'nxDomain' };
}

const records = (answers: ZoneRecord[], additionals: ZoneRecord[] = []): ZoneAnswer => ({
  kind: 'records',
  answers,
  additionals,
});
const address = (name: string, ip: string): ZoneRecord => ({
  name,
  type: ip.includes(':') ? 'AAAA' : 'A',
  ttl: TTL_SECONDS,
  data: ip,
});

const clusterIps = (service: Service): string[] =>
  (service.spec?.clusterIPs ?? [service.spec?.clusterIP ?? '']).filter((ip) => ip !== '' && ip !== 'None');

/** `labels`: the labels of the name before `svc`, last label first: namespace, Service, protocol, port. */
function serviceAnswer(name: string, labels: string[], type: string, zone: string, services: ZoneServices): ZoneAnswer {
  const [namespace, serviceName, protocol, port] = labels;
  if (namespace === undefined) return { kind: 'noData' };
  if (serviceName === undefined) return { kind: services.hasNamespace(namespace) ? 'noData' : 'nxDomain' };
  const service = services.get(namespace, serviceName);
  if (service === undefined || labels.length > 4) return { kind: 'nxDomain' };
  if (service.spec?.type === 'ExternalName') {
    const target = service.spec.externalName ?? '';
    if (target === '' || protocol !== undefined) return { kind: 'nxDomain' };
    return { kind: 'alias', answers: [{ name, type: 'CNAME', ttl: TTL_SECONDS, data: target }], target };
  }
  const ips = clusterIps(service);
  if (ips.length === 0) return { kind: 'nxDomain' };
  if (protocol !== undefined) return portAnswer(name, service, protocol, port, type, zone);
  const canonical = `${serviceName}.${namespace}.svc.${zone}`;
  if (type === 'SRV') {
    const ports = service.spec?.ports ?? [];
    return ports.length === 0
      ? { kind: 'noData' }
      : records(
          ports.slice(0, MAX_RECORDS).map((p) => srv(name, p.port, canonical)),
          ips.map((ip) => address(canonical, ip)),
        );
  }
  const found = ips.map((ip) => address(name, ip)).filter((record) => type === 'ANY' || record.type === type);
  return found.length === 0 ? { kind: 'noData' } : records(found);
}

const srv = (name: string, port: number, target: string): ZoneRecord => ({
  name,
  type: 'SRV',
  ttl: TTL_SECONDS,
  data: { priority: 0, weight: 100, port, target },
});

/** Answers questions for names of the form _port._protocol.service.namespace.svc. `port` is undefined if the first label is missing. */
function portAnswer(
  name: string,
  service: Service,
  protocol: string,
  port: string | undefined,
  type: string,
  zone: string,
): ZoneAnswer {
  if (!protocol.startsWith('_') || (port !== undefined && !port.startsWith('_'))) return { kind: 'nxDomain' };
  const [protocolName, portName] = [protocol.slice(1), port?.slice(1)];
  const ofProtocol = (service.spec?.ports ?? []).filter((p) => (p.protocol ?? 'TCP').toLowerCase() === protocolName);
  const found =
    portName === undefined ? ofProtocol : ofProtocol.filter((p) => (p.name ?? '').toLowerCase() === portName);
  if (found.length === 0) return { kind: 'nxDomain' };
  if (port === undefined || (type !== 'SRV' && type !== 'ANY')) return { kind: 'noData' };
  const canonical = `${service.metadata.name}.${service.metadata.namespace}.svc.${zone}`;
  return records(
    found.slice(0, MAX_RECORDS).map((p) => srv(name, p.port, canonical)),
    clusterIps(service).map((ip) => address(canonical, ip)),
  );
}

/** Answers questions for names of the form 10-0-0-7.namespace.pod, with the address in the name. */
function podAnswer(name: string, labels: string[], type: string, services: ZoneServices): ZoneAnswer {
  const [namespace, pod] = labels;
  if (namespace === undefined) return { kind: 'noData' };
  if (pod === undefined) return { kind: services.hasNamespace(namespace) ? 'noData' : 'nxDomain' };
  const value = parseIpv4(pod.replaceAll('-', '.'));
  if (labels.length > 2 || value === undefined) return { kind: 'nxDomain' };
  return type === 'A' || type === 'ANY' ? records([address(name, formatIpv4(value))]) : { kind: 'noData' };
}

/** Answers questions for reverse names, such as 7.0.0.10.in-addr.arpa. If the address is not that of a Service, returns `foreign`. */
function reverseAnswer(name: string, lower: string, type: string, zone: string, services: ZoneServices): ZoneAnswer {
  const ip = lower.slice(0, -REVERSE.length).split('.').reverse().join('.');
  const service = parseIpv4(ip) === undefined ? undefined : services.byClusterIp(ip);
  if (service === undefined) return { kind: 'foreign' };
  if (type !== 'PTR' && type !== 'ANY') return { kind: 'noData' };
  const { name: serviceName, namespace } = service.metadata;
  return records([{ name, type: 'PTR', ttl: TTL_SECONDS, data: `${serviceName}.${namespace}.svc.${zone}` }]);
}
