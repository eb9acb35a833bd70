/** Source: initIPFamilyFields of pkg/registry/core/service/storage of v1.33 (behavior and wording). */
import { isOpen } from '../../../api/core/v1/service/validate-cluster-ips.ts';
import type { ServiceSpec } from '../../../api/generated/types.ts';
import { type FieldError, invalid } from '../../../machinery/field-error.ts';
import { type IpFamily, parseIp } from '../../../machinery/ip.ts';
import { jsonEqual } from '../../../machinery/json-value.ts';

const other = (family: string): IpFamily => (family === 'IPv4' ? 'IPv6' : 'IPv4');

/**
 * Whether an update of a Service with PreferDualStack changes neither its type, its policy, its families nor its addresses. Such an update
 * adds and removes no address, even if the configured families have changed.
 */
export const keepsPreferredFamilies = (spec: ServiceSpec, old: ServiceSpec | undefined): boolean =>
  old !== undefined &&
  spec.type !== 'ExternalName' &&
  spec.type === old.type &&
  spec.ipFamilyPolicy === 'PreferDualStack' &&
  old.ipFamilyPolicy === 'PreferDualStack' &&
  jsonEqual(spec.clusterIPs ?? [], old.clusterIPs ?? []) &&
  jsonEqual(spec.ipFamilies ?? [], old.ipFamilies ?? []);

/**
 * Sets the missing ipFamilyPolicy and ipFamilies of a valid Service that is not of type ExternalName. `configured`: the families of the
 * configured ranges, the default first. Returns errors if the Service requests a family that is not configured, or two families although
 * only one is configured.
 */
export function fillFamilies(
  spec: ServiceSpec,
  old: ServiceSpec | undefined,
  configured: readonly IpFamily[],
): FieldError[] {
  if (keepsPreferredFamilies(spec, old)) return [];
  spec.ipFamilyPolicy ??= old?.ipFamilyPolicy ?? (isOpen(spec) ? 'RequireDualStack' : 'SingleStack');
  const families = [...(spec.ipFamilies ?? [])];
  const errors = inferFamilies(spec.clusterIPs ?? [], families, configured);
  if (errors.length > 0) return errors;
  const isDual = spec.ipFamilyPolicy !== 'SingleStack';
  if (!isOpen(spec)) {
    errors.push(...checkConfigured(spec.ipFamilyPolicy, families, configured));
    if (errors.length > 0) return errors;
  }
  const first = families[0] ?? configured[0] ?? 'IPv4';
  if (families.length === 0) families.push(first);
  if (isDual && families.length === 1 && (isOpen(spec) || configured.length === 2)) families.push(other(first));
  spec.ipFamilies = families;
  return [];
}

function inferFamilies(
  clusterIps: readonly string[],
  families: string[],
  configured: readonly IpFamily[],
): FieldError[] {
  return clusterIps.flatMap((text, index) => {
    const ip = parseIp(text);
    if (ip === undefined || index < families.length) return [];
    if (!configured.includes(ip.family)) {
      return [invalid(`spec.clusterIPs[${index}]`, clusterIps, `${ip.family} is not configured on this cluster`)];
    }
    families.push(ip.family);
    return [];
  });
}

function checkConfigured(policy: string, families: readonly string[], configured: readonly IpFamily[]): FieldError[] {
  const errors: FieldError[] = [];
  if (policy === 'RequireDualStack' && configured.length < 2) {
    errors.push(invalid('spec.ipFamilyPolicy', policy, 'this cluster is not configured for dual-stack services'));
  }
  families.forEach((family, index) => {
    if (!configured.includes(family as IpFamily)) {
      errors.push(invalid(`spec.ipFamilies[${index}]`, family, 'not configured on this cluster'));
    }
  });
  return errors;
}
