/** Validation of the fields and the status of load balancers. Source: pkg/apis/core/validation of v1.33 (behavior and wording). */
import {
  allErrors,
  type FieldError,
  forbidden,
  invalid,
  notSupported,
  required,
} from '../../../../machinery/field-error.ts';
import { addressErrors, rangeErrors } from '../../../../machinery/ip.ts';
import { dns1123SubdomainErrors, ipFamily, qualifiedNameErrors } from '../../../../machinery/names.ts';
import type { LoadBalancerIngress, Service, ServiceSpec } from '../../../generated/types.ts';

/** The annotation that contained the ranges before the field spec.loadBalancerSourceRanges existed. */
const SOURCE_RANGES = 'service.beta.kubernetes.io/load-balancer-source-ranges';
const ONLY_BALANCED = "may only be used when `type` is 'LoadBalancer'";
const IP_MODES = ['Proxy', 'VIP'];

const checkRange = (field: string, range: string): FieldError[] =>
  rangeErrors(range).map((text) => invalid(field, range, text));

/**
 * Validates the IP ranges of allowed clients, in the field or, if the field is empty, in the annotation. An update may keep ranges that the
 * old Service has.
 */
function validateSourceRanges({ metadata, spec = {} }: Service, old: Service | undefined): FieldError[] {
  const { loadBalancerSourceRanges: ranges = [], type } = spec;
  const misplaced = (field: string): FieldError[] => (type === 'LoadBalancer' ? [] : [forbidden(field, ONLY_BALANCED)]);
  if (ranges.length > 0) {
    // As in v1.33, the path begins with an upper-case letter, and spaces around a range are ignored.
    const field = 'spec.LoadBalancerSourceRanges';
    const known = new Set((old?.spec?.loadBalancerSourceRanges ?? []).map((range) => range.trim()));
    const errors = ranges
      .map((range) => range.trim())
      .map((range, index) => (known.has(range) ? [] : checkRange(`${field}[${index}]`, range)));
    return allErrors(misplaced(field), ...errors);
  }
  const text = metadata.annotations?.[SOURCE_RANGES];
  if (text === undefined) return [];
  const field = `metadata.annotations[${SOURCE_RANGES}]`;
  const isKnown = text.trim() === '' || old?.metadata.annotations?.[SOURCE_RANGES] === text;
  const errors = isKnown ? [] : text.split(',').map((range) => checkRange(field, range.trim()));
  return allErrors(misplaced(field), ...errors);
}

export function validateLoadBalancer(service: Service, old?: Service): FieldError[] {
  const { type, allocateLoadBalancerNodePorts, loadBalancerClass } = service.spec ?? {};
  const errors = validateSourceRanges(service, old);
  if (type !== 'LoadBalancer') {
    if (allocateLoadBalancerNodePorts !== undefined) {
      errors.push(forbidden('spec.allocateLoadBalancerNodePorts', ONLY_BALANCED));
    }
    if (loadBalancerClass !== undefined) errors.push(forbidden('spec.loadBalancerClass', ONLY_BALANCED));
  } else if (loadBalancerClass !== undefined) {
    const texts = qualifiedNameErrors(loadBalancerClass);
    errors.push(...texts.map((text) => invalid('spec.loadBalancerClass', loadBalancerClass, text)));
  }
  return errors;
}

export const validateLoadBalancerClassUpdate = (spec: ServiceSpec, old: ServiceSpec): FieldError[] =>
  spec.type === 'LoadBalancer' && old.type === 'LoadBalancer' && spec.loadBalancerClass !== old.loadBalancerClass
    ? [invalid('spec.loadBalancerClass', spec.loadBalancerClass ?? null, 'may not change once set')]
    : [];

function validateMode({ ip = '', ipMode }: LoadBalancerIngress, field: string): FieldError[] {
  if (ipMode === undefined) return ip === '' ? [] : [required(field, 'must be specified when `ip` is set')];
  if (ip === '') return [forbidden(field, 'may not be specified when `ip` is not set')];
  return IP_MODES.includes(ipMode) ? [] : [notSupported(field, ipMode, IP_MODES)];
}

function validateHost(hostname: string, field: string): FieldError[] {
  if (hostname === '') return [];
  return allErrors(
    dns1123SubdomainErrors(hostname).map((text) => invalid(field, hostname, text)),
    ipFamily(hostname) === 0 ? [] : [invalid(field, hostname, 'must be a DNS name, not an IP address')],
  );
}

/** An update may keep IPs that the old status has. */
export function validateServiceStatus({ spec, status }: Service, old?: Service): FieldError[] {
  const path = 'status.loadBalancer.ingress';
  const ingress = status?.loadBalancer?.ingress ?? [];
  if (spec?.type !== 'LoadBalancer' && ingress.length > 0) {
    return [forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")];
  }
  const known = (old?.status?.loadBalancer?.ingress ?? []).map(({ ip }) => ip);
  return ingress.flatMap((each, index) => {
    const { ip = '', hostname = '' } = each;
    const errors = ip === '' || known.includes(ip) ? [] : addressErrors(ip);
    return allErrors(
      errors.map((text) => invalid(`${path}[${index}].ip`, ip, text)),
      validateMode(each, `${path}[${index}].ipMode`),
      validateHost(hostname, `${path}[${index}].hostname`),
    );
  });
}
