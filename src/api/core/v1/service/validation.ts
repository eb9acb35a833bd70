/** Validation of Services. Source: pkg/apis/core/validation of v1.33 (behavior and wording). */
import { BlockList, isIPv6 } from 'node:net';
import {
  allErrors,
  type FieldError,
  forbidden,
  invalid,
  notSupported,
  required,
} from '../../../../machinery/field-error.ts';
import { dns1123SubdomainErrors, ipErrors, ipFamily } from '../../../../machinery/names.ts';
import { validateLabels } from '../../../../machinery/object-meta.ts';
import type { Service, ServiceSpec } from '../../../generated/types.ts';
import { isExternallyAccessible } from './defaults.ts';
import { validateClusterIps } from './validate-cluster-ips.ts';
import { isHeadless, validatePorts } from './validate-ports.ts';

const TYPES = ['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'];
const AFFINITIES = ['ClientIP', 'None'];
const TRAFFIC_POLICIES = ['Cluster', 'Local'];
const MAX_AFFINITY_SECONDS = 86_400;
/** The kubelet's port, which a Service of type LoadBalancer may not expose. */
const NODE_AGENT_PORT = 10_250;

function validateType(spec: ServiceSpec): FieldError[] {
  const errors: FieldError[] = [];
  const headless = isHeadless(spec);
  if (spec.type === 'LoadBalancer') {
    spec.ports?.forEach(({ port }, index) => {
      if (port !== NODE_AGENT_PORT) return;
      const text = `may not expose port ${NODE_AGENT_PORT} externally since it is used by kubelet`;
      errors.push(invalid(`spec.ports[${index}]`, port, text));
    });
  }
  if (headless && (spec.type === 'LoadBalancer' || spec.type === 'NodePort')) {
    errors.push(invalid('spec.clusterIPs[0]', 'None', `may not be set to 'None' for ${spec.type} services`));
  }
  if (spec.type !== 'ExternalName') return errors;
  for (const field of ['clusterIPs', 'ipFamilies', 'ipFamilyPolicy'] as const) {
    if ((spec[field] ?? []).length > 0) {
      errors.push(forbidden(`spec.${field}`, 'may not be set for ExternalName services'));
    }
  }
  const name = (spec.externalName ?? '').replace(/\.$/, '');
  if (name === '') errors.push(required('spec.externalName'));
  else errors.push(...dns1123SubdomainErrors(name).map((text) => invalid('spec.externalName', name, text)));
  return errors;
}

function validateAffinity({ sessionAffinity, sessionAffinityConfig }: ServiceSpec): FieldError[] {
  if (!sessionAffinity) return [required('spec.sessionAffinity')];
  if (!AFFINITIES.includes(sessionAffinity)) {
    return [notSupported('spec.sessionAffinity', sessionAffinity, AFFINITIES)];
  }
  if (sessionAffinity === 'None') return [];
  const seconds = sessionAffinityConfig?.clientIP?.timeoutSeconds ?? 0;
  if (seconds > 0 && seconds <= MAX_AFFINITY_SECONDS) return [];
  const text = `must be greater than 0 and less than ${MAX_AFFINITY_SECONDS}`;
  return [invalid('spec.sessionAffinityConfig.clientIP.timeoutSeconds', seconds, text)];
}

/** Returns a list of the addresses in the CIDR ranges. A range of IPv4 addresses also contains their IPv4-mapped IPv6 addresses. */
function rangesOf(...ranges: string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = '', prefix] = range.split('/');
    list.addSubnet(address, Number(prefix), isIPv6(address) ? 'ipv6' : 'ipv4');
  }
  return list;
}

const HEX_DIGITS = [...'0123456789abcdef'];
/** The ranges that an external IP must not be in, each with upstream's message. */
const SPECIAL_RANGES: readonly (readonly [string, BlockList])[] = [
  ['may not be unspecified (0.0.0.0 or ::)', rangesOf('0.0.0.0/32', '::/128')],
  ['may not be in the loopback range (127.0.0.0/8, ::1/128)', rangesOf('127.0.0.0/8', '::1/128')],
  ['may not be in the link-local range (169.254.0.0/16, fe80::/10)', rangesOf('169.254.0.0/16', 'fe80::/10')],
  [
    'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)',
    // Multicast addresses of any flags are link-local if their scope is 2.
    rangesOf('224.0.0.0/24', ...HEX_DIGITS.map((flags) => `ff${flags}2::/16`)),
  ],
];

/** Rejects unspecified, loopback and link-local addresses, including link-local multicast. */
function specialIpErrors(ip: string): string[] {
  const found = SPECIAL_RANGES.find(([, ranges]) => ranges.check(ip, isIPv6(ip) ? 'ipv6' : 'ipv4'));
  return found === undefined ? [] : [found[0]];
}

const validateExternalIps = ({ externalIPs = [] }: ServiceSpec): FieldError[] =>
  externalIPs.flatMap((ip, index) => {
    const errors = ipErrors(ip);
    return (errors.length > 0 ? errors : specialIpErrors(ip)).map((text) =>
      invalid(`spec.externalIPs[${index}]`, ip, text),
    );
  });

function validateTraffic(spec: ServiceSpec): FieldError[] {
  const errors: FieldError[] = [];
  const { type, externalTrafficPolicy, internalTrafficPolicy, healthCheckNodePort = 0, trafficDistribution } = spec;
  if (externalTrafficPolicy) {
    const field = 'spec.externalTrafficPolicy';
    if (!isExternallyAccessible(spec)) {
      errors.push(invalid(field, externalTrafficPolicy, 'may only be set for externally-accessible services'));
    } else if (!TRAFFIC_POLICIES.includes(externalTrafficPolicy)) {
      errors.push(notSupported(field, externalTrafficPolicy, TRAFFIC_POLICIES));
    }
  }
  if (healthCheckNodePort !== 0 && !(type === 'LoadBalancer' && externalTrafficPolicy === 'Local')) {
    const text = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
    errors.push(invalid('spec.healthCheckNodePort', healthCheckNodePort, text));
  }
  if (internalTrafficPolicy && !TRAFFIC_POLICIES.includes(internalTrafficPolicy)) {
    errors.push(notSupported('spec.internalTrafficPolicy', internalTrafficPolicy, TRAFFIC_POLICIES));
  }
  if (trafficDistribution !== undefined && trafficDistribution !== 'PreferClose') {
    errors.push(notSupported('spec.trafficDistribution', trafficDistribution, ['PreferClose']));
  }
  if (type !== 'LoadBalancer') {
    for (const field of ['allocateLoadBalancerNodePorts', 'loadBalancerClass'] as const) {
      if (spec[field] !== undefined) {
        errors.push(forbidden(`spec.${field}`, "may only be used when `type` is 'LoadBalancer'"));
      }
    }
    if ((spec.loadBalancerSourceRanges ?? []).length > 0) {
      errors.push(forbidden('spec.LoadBalancerSourceRanges', "may only be used when `type` is 'LoadBalancer'"));
    }
  }
  return errors;
}

export function validateService(service: Service): FieldError[] {
  const spec = service.spec ?? {};
  const errors: FieldError[] = [];
  if ((spec.ports ?? []).length === 0 && !isHeadless(spec) && spec.type !== 'ExternalName') {
    errors.push(required('spec.ports'));
  }
  errors.push(...validateType(spec), ...validatePorts(spec));
  errors.push(...validateLabels(spec.selector, 'spec.selector'));
  errors.push(...validateAffinity(spec), ...validateClusterIps(spec), ...validateExternalIps(spec));
  if (!spec.type) errors.push(required('spec.type'));
  else if (!TYPES.includes(spec.type)) errors.push(notSupported('spec.type', spec.type, TYPES));
  return allErrors(errors, validateTraffic(spec));
}

/** Validates the IPs and host names of the load balancer. */
export function validateServiceStatus(service: Service): FieldError[] {
  const errors: FieldError[] = [];
  service.status?.loadBalancer?.ingress?.forEach(({ ip, hostname }, index) => {
    const field = `status.loadBalancer.ingress[${index}]`;
    if (ip && ipFamily(ip) === 0) errors.push(invalid(`${field}.ip`, ip, ipErrors(ip)[0] ?? ''));
    if (!hostname) return;
    if (ipFamily(hostname) !== 0) {
      errors.push(invalid(`${field}.hostname`, hostname, 'must be a DNS name, not an IP address'));
    } else {
      errors.push(...dns1123SubdomainErrors(hostname).map((text) => invalid(`${field}.hostname`, hostname, text)));
    }
  });
  return errors;
}
