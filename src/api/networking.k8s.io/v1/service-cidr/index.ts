/**
 * The ServiceCIDR: ranges from which Services get their cluster IPs.
 *
 * Boundary: the API server allocates addresses from the ranges of ServiceCIDRs that are ready (apiserver/admission/services); a controller
 * reports whether a ServiceCIDR is ready, and prevents its deletion while its addresses are in use (controllers/service-cidrs).
 * Source: pkg/registry/networking/servicecidr, pkg/apis/networking/validation and pkg/printers of v1.33.
 */
import { allErrors, type FieldError, invalid, required } from '../../../../machinery/field-error.ts';
import { canonicalRangeErrors, parseIpRange } from '../../../../machinery/ip.ts';
import { IMMUTABLE_TEXT } from '../../../../machinery/object-meta.ts';
import { kind } from '../../../declaration.ts';
import type { ServiceCIDR } from '../../../generated/types.ts';
import { ageColumn, column, nameColumn } from '../../../table.ts';

const FIELD = 'spec.cidrs';

/**
 * Whether addresses can be allocated from the ranges. A ServiceCIDR without the condition Ready is ready, because its controller may not
 * have seen it yet.
 */
export const isReadyServiceCidr = ({ metadata, status }: ServiceCIDR): boolean =>
  metadata.deletionTimestamp === undefined &&
  (status?.conditions?.find(({ type }) => type === 'Ready')?.status ?? 'True') === 'True';

function validateRanges(cidrs: readonly string[]): FieldError[] {
  if (cidrs.length === 0) return [required(FIELD, 'at least one CIDR required')];
  // As in v1.33, this error shows the spec.
  if (cidrs.length > 2) return [invalid(FIELD, { CIDRs: cidrs }, 'may only hold up to 2 values')];
  const families = cidrs.map((cidr) => parseIpRange(cidr)?.family);
  const text = 'may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64';
  return allErrors(
    cidrs.flatMap((cidr, index) =>
      canonicalRangeErrors(cidr).map((error) => invalid(`${FIELD}[${index}]`, cidr, error)),
    ),
    families.length === 2 && families[0] !== undefined && families[0] === families[1]
      ? [invalid(FIELD, cidrs, text)]
      : [],
  );
}

function validateServiceCidr({ spec }: ServiceCIDR, old?: ServiceCIDR): FieldError[] {
  const cidrs = spec?.cidrs ?? [];
  if (old === undefined) return validateRanges(cidrs);
  const before = old.spec?.cidrs ?? [];
  const isExtended = before.length === 1 && cidrs.length === 2;
  if (!isExtended && before.length !== cidrs.length) return [invalid(FIELD, cidrs, IMMUTABLE_TEXT)];
  const changes = before.flatMap((cidr, index) =>
    cidr === cidrs[index] ? [] : [invalid(`${FIELD}[${index}]`, cidrs[index], IMMUTABLE_TEXT)],
  );
  return isExtended ? allErrors(changes, validateRanges(cidrs)) : changes;
}

export const serviceCidrKind = kind<ServiceCIDR>('networking.k8s.io/v1', 'ServiceCIDR', {
  scope: 'Cluster',
  defaults(serviceCidr) {
    serviceCidr.spec ??= {};
  },
  status: { initial: () => ({}) },
  rules: [validateServiceCidr],
  columns: [
    nameColumn,
    column('CIDRs', 'The ranges of cluster IPs.', ({ spec }) => (spec?.cidrs ?? []).join(',')),
    ageColumn,
  ],
});
