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
import { addressErrors } from '../../../../machinery/ip.ts';
import { ipFamily } from '../../../../machinery/names.ts';
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
    return addressErrors(ip).map((text) => invalid(`spec.clusterIPs[${index}]`, ip, text));
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

const hasClusterIps = ({ type }: ServiceSpec): boolean => type !== 'ExternalName';

/** A client that omits the policy keeps the old one. Returns undefined if the API server will choose the policy. */
const policyAfter = (spec: ServiceSpec, old: ServiceSpec | undefined): string | undefined =>
  spec.ipFamilyPolicy ?? (old === undefined || !hasClusterIps(old) ? undefined : old.ipFamilyPolicy);

/**
 * The policy must allow the numbers of cluster IPs and families. An update releases the second ones only with the policy SingleStack.
 * Source: initIPFamilyFields of pkg/registry/core/service/storage of v1.33 (behavior and wording).
 */
export function validateFamilyPolicy(spec: ServiceSpec, old?: ServiceSpec): FieldError[] {
  if (!hasClusterIps(spec)) return [];
  const { clusterIPs = [], ipFamilies = [] } = spec;
  const policy = policyAfter(spec, old) ?? (isOpen(spec) ? 'RequireDualStack' : 'SingleStack');
  const bad = (text: string): FieldError => invalid('spec.ipFamilyPolicy', policy, text);
  const errors: FieldError[] = [];
  if (policy === 'SingleStack') {
    const text = "must be 'RequireDualStack' or 'PreferDualStack' when multiple";
    if (clusterIPs.length === 2) errors.push(bad(`${text} cluster IPs are specified`));
    if (ipFamilies.length === 2) errors.push(bad(`${text} IP families are specified`));
  } else if (old !== undefined) {
    const isReduced = (now: readonly string[], before: readonly string[] = []): boolean =>
      now.length > 0 && now.length < before.length;
    const text = "must be 'SingleStack' to release the secondary";
    if (isReduced(clusterIPs, old.clusterIPs)) errors.push(bad(`${text} cluster IP`));
    if (isReduced(ipFamilies, old.ipFamilies)) errors.push(bad(`${text} IP family`));
  }
  return errors;
}

/**
 * Users create the endpoints of a headless Service without a selector, so the Service may have both IP families even if the cluster has
 * only one.
 */
export const isOpen = (spec: ServiceSpec): boolean =>
  spec.clusterIP === 'None' && Object.keys(spec.selector ?? {}).length === 0;

const isUnset = (list: readonly string[] | undefined): boolean => (list ?? []).length === 0;

/**
 * An update must keep the first cluster IP and the first IP family. The second ones may be added or removed, but not changed. Families that
 * are absent are derived later. Exempt: a Service that is headless before and after the update, or an ExternalName before or after it.
 */
export function validateClusterIpsUpdate(spec: ServiceSpec, old: ServiceSpec): FieldError[] {
  if (!hasClusterIps(spec) || !hasClusterIps(old)) return [];
  const [isNow, wasBefore] = [isHeadless(spec), isHeadless(old)];
  if (isNow && wasBefore) return [];
  const ips = spec.clusterIPs ?? [];
  const oldIps = old.clusterIPs ?? [];
  const errors = oldIps.flatMap((ip, index) =>
    index < ips.length && ips[index] !== ip
      ? [invalid(`spec.clusterIPs[${index}]`, ips, 'may not change once set')]
      : [],
  );
  if (isUnset(ips) && !isUnset(oldIps)) {
    errors.push(invalid('spec.clusterIPs[0]', ips, 'primary clusterIP can not be unset'));
  }
  const families = spec.ipFamilies ?? [];
  const oldFamilies = old.ipFamilies ?? [];
  if (isNow !== wasBefore || isUnset(families)) return errors;
  const changed = oldFamilies.filter((family, index) => index < families.length && family !== families[index]);
  return [...errors, ...changed.map(() => invalid('spec.ipFamilies[0]', families, 'may not change once set'))];
}
