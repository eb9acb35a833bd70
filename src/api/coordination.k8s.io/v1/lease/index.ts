/** The Lease: names the holder of a role for a limited time, or is a node's heartbeat. Source: pkg/registry/coordination of v1.33. */
import { type FieldError, invalid } from '../../../../machinery/field-error.ts';
import { dns1123SubdomainErrors } from '../../../../machinery/names.ts';
import { validateObjectMeta, validateObjectMetaUpdate } from '../../../../machinery/object-meta.ts';
import type { Lease } from '../../../generated/types.ts';
import type { KindDefinition } from '../../../kind.ts';
import { ageCell, ageColumn, column, nameColumn } from '../../../table.ts';

function validateSpec({ spec }: Lease): FieldError[] {
  const errors: FieldError[] = [];
  const { leaseDurationSeconds, leaseTransitions } = spec ?? {};
  if (leaseDurationSeconds !== undefined && leaseDurationSeconds <= 0) {
    errors.push(invalid('spec.leaseDurationSeconds', leaseDurationSeconds, 'must be greater than 0'));
  }
  if (leaseTransitions !== undefined && leaseTransitions < 0) {
    errors.push(invalid('spec.leaseTransitions', leaseTransitions, 'must be greater than or equal to 0'));
  }
  return errors;
}

/** Drops the fields of coordinated leader election, whose feature gate is off by default in v1.33. */
function dropCoordination({ spec }: Lease): void {
  delete spec?.strategy;
  delete spec?.preferredHolder;
}

export const leaseKind: KindDefinition<Lease> = {
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  plural: 'leases',
  singular: 'lease',
  shortNames: [],
  categories: [],
  namespaced: true,
  schema: 'Lease',
  prepareForCreate: dropCoordination,
  prepareForUpdate: dropCoordination,
  validateCreate: (lease) => [
    ...validateObjectMeta(lease.metadata, { namespaced: true, nameErrors: dns1123SubdomainErrors }),
    ...validateSpec(lease),
  ],
  validateUpdate: (lease, old) => [...validateObjectMetaUpdate(lease.metadata, old.metadata), ...validateSpec(lease)],
  subresources: {},
  columns: [nameColumn, column('Holder', 'The current holder of the lease.'), ageColumn],
  row: ({ metadata, spec }, { now }) => [
    metadata.name,
    spec?.holderIdentity ?? '',
    ageCell(metadata.creationTimestamp, now),
  ],
};
