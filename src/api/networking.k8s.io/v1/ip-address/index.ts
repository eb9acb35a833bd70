/**
 * The IPAddress: a cluster IP that is in use. Its name is the address in canonical form, and its spec names the object that uses the
 * address.
 *
 * Boundary: the API server creates and deletes the IPAddresses of Services in the transactions that write the Services
 * (apiserver/admission/services).
 * Source: pkg/registry/networking/ipaddress, pkg/apis/networking/validation and pkg/printers of v1.33.
 */
import { allErrors, type FieldError, invalid, required } from '../../../../machinery/field-error.ts';
import { canonicalIpErrors } from '../../../../machinery/ip.ts';
import { dns1123SubdomainErrors, type NameErrors, pathSegmentErrors } from '../../../../machinery/names.ts';
import { kind } from '../../../declaration.ts';
import type { IPAddress, ParentReference } from '../../../generated/types.ts';
import { immutable } from '../../../rules.ts';
import { ageColumn, column, nameColumn } from '../../../table.ts';

/** The labels of the IPAddresses of Services. ALLOCATOR is the value of MANAGED_BY_LABEL. */
export const FAMILY_LABEL = 'ipaddress.kubernetes.io/ip-family';
export const MANAGED_BY_LABEL = 'ipaddress.kubernetes.io/managed-by';
export const ALLOCATOR = 'ipallocator.k8s.io';

export const parentText = ({ group, resource, namespace, name }: ParentReference): string =>
  `${(group ? `${resource}.${group}` : (resource ?? '')).toLowerCase()}${namespace ? `/${namespace}` : ''}/${name}`;

function validateParent({ spec }: IPAddress, old?: IPAddress): FieldError[] {
  // As in v1.33, an update only checks that the reference stays the same.
  if (old !== undefined) return immutable('spec.parentRef')({ spec }, { spec: old.spec });
  const parent = spec?.parentRef;
  const field = 'spec.parentRef';
  if (parent === undefined) return [required(field)];
  const check = (name: keyof ParentReference, errorsOf: NameErrors): FieldError[] =>
    parent[name] ? errorsOf(parent[name]).map((text) => invalid(`${field}.${name}`, parent[name], text)) : [];
  return allErrors(
    check('group', dns1123SubdomainErrors),
    parent.resource ? check('resource', pathSegmentErrors) : [required(`${field}.resource`)],
    parent.name ? check('name', pathSegmentErrors) : [required(`${field}.name`)],
    check('namespace', pathSegmentErrors),
  );
}

export const ipAddressKind = kind<IPAddress>('networking.k8s.io/v1', 'IPAddress', {
  scope: 'Cluster',
  shortNames: ['ip'],
  names: canonicalIpErrors,
  defaults(address) {
    address.spec ??= {} as IPAddress['spec'];
  },
  rules: [validateParent],
  columns: [
    nameColumn,
    column('ParentRef', 'The object that uses the address.', ({ spec }) =>
      spec?.parentRef === undefined ? '<none>' : parentText(spec.parentRef),
    ),
    ageColumn,
  ],
});
