/** The Lease: names the holder of a role for a limited time, or is a node's heartbeat. Source: pkg/registry/coordination of v1.33. */
import { kind } from '../../../declaration.ts';
import type { Lease } from '../../../generated/types.ts';
import { at, nonNegative, positive } from '../../../rules.ts';
import { ageColumn, column, nameColumn } from '../../../table.ts';

/** The feature gate of coordinated leader election is off by default in v1.33. */
function dropCoordination({ spec }: Lease): void {
  delete spec?.strategy;
  delete spec?.preferredHolder;
}

export const leaseKind = kind<Lease>('coordination.k8s.io/v1', 'Lease', {
  prepareForCreate: dropCoordination,
  prepareForUpdate: dropCoordination,
  rules: [at('spec.leaseDurationSeconds', positive), at('spec.leaseTransitions', nonNegative)],
  columns: [
    nameColumn,
    column('Holder', 'The current holder of the lease.', ({ spec }) => spec?.holderIdentity ?? ''),
    ageColumn,
  ],
});
