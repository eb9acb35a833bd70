/**
 * The PersistentVolumeClaim: a request for storage that outlives a Pod.
 * Source: pkg/registry/core/persistentvolumeclaim and pkg/apis/core of v1.33.
 */
import { kind } from '../../../declaration.ts';
import type { PersistentVolumeClaim } from '../../../generated/types.ts';
import { onUpdate } from '../../../rules.ts';
import { ageColumn, column, nameColumn } from '../../../table.ts';
import { accessModesCell } from '../persistent-volume/access-modes.ts';
import { validateClaim, validateClaimStatus, validateClaimUpdate } from './validation.ts';
import { claimWarnings } from './warnings.ts';

/** The finalizer that prevents the deletion of a claim while a Pod uses the claim. */
export const CLAIM_PROTECTION = 'kubernetes.io/pvc-protection';

const isBound = ({ spec }: PersistentVolumeClaim): boolean => (spec?.volumeName ?? '') !== '';

export const persistentVolumeClaimKind = kind<PersistentVolumeClaim>('v1', 'PersistentVolumeClaim', {
  shortNames: ['pvc'],
  defaults({ spec }) {
    if (spec !== undefined) spec.volumeMode ??= 'Filesystem';
  },
  status: { initial: () => ({ phase: 'Pending' }), rules: [onUpdate(validateClaimStatus)] },
  prepareForCreate({ metadata }) {
    const finalizers = metadata.finalizers ?? [];
    if (!finalizers.includes(CLAIM_PROTECTION)) metadata.finalizers = [...finalizers, CLAIM_PROTECTION];
  },
  rules: [validateClaim, onUpdate(validateClaimUpdate)],
  warnings: claimWarnings,
  returnsDeletedObject: true,
  columns: [
    nameColumn,
    column('Status', 'Whether the claim is bound to a volume.', ({ metadata, status }) =>
      metadata.deletionTimestamp === undefined ? (status?.phase ?? '') : 'Terminating',
    ),
    column('Volume', 'The volume that the claim is bound to.', ({ spec }) => spec?.volumeName ?? ''),
    column('Capacity', 'The capacity of the volume.', (claim) =>
      isBound(claim) ? (claim.status?.capacity?.['storage'] ?? '0') : '',
    ),
    column('Access Modes', 'How the volume can be mounted.', (claim) =>
      isBound(claim) ? accessModesCell(claim.status?.accessModes) : '',
    ),
    column('StorageClass', 'The requested class.', ({ spec }) => spec?.storageClassName ?? ''),
    column(
      'VolumeAttributesClass',
      'The requested VolumeAttributesClass.',
      ({ spec }) => spec?.volumeAttributesClassName ?? '<unset>',
    ),
    ageColumn,
    column(
      'VolumeMode',
      'Whether the volume is a file system or a block device.',
      ({ spec }) => spec?.volumeMode ?? '<unset>',
      { wide: true },
    ),
  ],
});
