/** Validation of a Service's cluster IPs and IP families. Source: pkg/apis/core/validation of v1.33 (behavior and wording). */

import { repeats } from '../../../../machinery/duplicates.ts';
import {
  allErrors,
  duplicate,
  type FieldError,
  invalid,
  notSupported,
  required,
} from '../../../../machinery/field-error.ts';
import { ipErrors, ipFamily } from '../../../../machinery/names.ts';
import type { ServiceSpec } from '../../../generated/types.ts';
import { isHeadless } from './validate-ports.ts';

const FAMILIES = ['IPv4', 'IPv6'];
const POLICIES = ['PreferDualStack', 'RequireDualStack', 'SingleStack'];

function validateFamilies({ ipFamilies = [], ipFamilyPolicy }: ServiceSpec): FieldError[] {
  const errors: FieldError[] = [];
  const repeated = repeats(ipFamilies);
  ipFamilies.forEach((family, index) => {
    const field = `spec.ipFamilies[${index}]`;
    if (!FAMILIES.includes(family)) errors.push(notSupported(field, family, FAMILIES));
    if (repeated[index]) errors.push(duplicate(field, family));
  });
  if (ipFamilyPolicy !== undefined && !POLICIES.includes(ipFamilyPolicy)) {
    errors.push(notSupported('spec.ipFamilyPolicy', ipFamilyPolicy, POLICIES));
  }
  return errors;
}

/** Checks that clusterIP is the first of clusterIPs, or that both are absent. */
function validatePair({ clusterIP = '', clusterIPs = [] }: ServiceSpec): FieldError[] {
  if (clusterIP === '') {
    return clusterIPs.length === 0
      ? []
      : [invalid('spec.clusterIPs', clusterIPs, 'must be empty when `clusterIP` is not specified')];
  }
  if (clusterIPs.length === 0) return [required('spec.clusterIPs')];
  return clusterIP === clusterIPs[0]
    ? []
    : [invalid('spec.clusterIPs', clusterIPs, 'first value must match `clusterIP`')];
}

function validateAddresses(clusterIPs: string[]): FieldError[] {
  return clusterIPs.flatMap((ip, index) => {
    if (index === 0 && ip === 'None') {
      const text = "'None' must be the first and only value";
      return clusterIPs.length > 1 ? [invalid('spec.clusterIPs', clusterIPs, text)] : [];
    }
    return ipErrors(ip).map((text) => invalid(`spec.clusterIPs[${index}]`, ip, text));
  });
}

export function validateClusterIps(spec: ServiceSpec): FieldError[] {
  if (spec.type === 'ExternalName') return [];
  const { clusterIPs = [], ipFamilies = [] } = spec;
  const errors = allErrors(validatePair(spec), validateFamilies(spec));
  const addressErrors = validateAddresses(clusterIPs);
  errors.push(...addressErrors);
  if (clusterIPs.length > 2) errors.push(invalid('spec.clusterIPs', clusterIPs, 'may only hold up to 2 values'));
  // The remaining checks need valid addresses, and a headless Service has no address.
  if (addressErrors.length > 0 || isHeadless(spec)) return errors;
  if (clusterIPs.length === 2 && new Set(clusterIPs.map(ipFamily)).size === 1) {
    errors.push(invalid('spec.clusterIPs', clusterIPs, 'may specify no more than one IP for each IP family'));
  }
  clusterIPs.forEach((ip, index) => {
    const family = ipFamilies[index];
    if (family !== undefined && FAMILIES.includes(family) && family !== `IPv${ipFamily(ip)}`) {
      const text = `expected an ${family} value as indicated by \`ipFamilies[${index}]\``;
      errors.push(invalid(`spec.clusterIPs[${index}]`, ip, text));
    }
  });
  return errors;
}

/**
 * Checks that an update neither changes a cluster IP nor removes the first one. The second one may be added and
 * removed. Does not check Services that are or were of type ExternalName, or that are and were headless.
 */
export function validateClusterIpsUpdate(spec: ServiceSpec, old: ServiceSpec): FieldError[] {
  if (spec.type === 'ExternalName' || old.type === 'ExternalName') return [];
  if (isHeadless(spec) && isHeadless(old)) return [];
  const ips = spec.clusterIPs ?? [];
  const oldIps = old.clusterIPs ?? [];
  const changed = (index: number): boolean => oldIps[index] !== undefined && ips[index] !== oldIps[index];
  if (oldIps.length > ips.length && ips.length === 0) {
    return [invalid('spec.clusterIPs[0]', ips, 'primary clusterIP can not be unset')];
  }
  return oldIps.flatMap((_, index) =>
    index < ips.length && changed(index) ? [invalid(`spec.clusterIPs[${index}]`, ips, 'may not change once set')] : [],
  );
}
