/**
 * The PersistentVolumeClaim: a request for storage that outlives a Pod.
 * Source: pkg/registry/core/persistentvolumeclaim and pkg/apis/core of v1.33.
 */
import type { PersistentVolumeClaim } from '../../../generated/types.ts';
import type { KindDefinition } from '../../../kind.ts';
import { statusSubresource } from '../../../status-subresource.ts';
import { ageCell, ageColumn, column, nameColumn } from '../../../table.ts';
import { accessModesCell } from '../persistent-volume/access-modes.ts';
import { validateClaimCreate, validateClaimStatus, validateClaimUpdate } from './validation.ts';

/** The finalizer that prevents the deletion of a claim while a Pod uses the claim. */
export const CLAIM_PROTECTION = 'kubernetes.io/pvc-protection';

export const persistentVolumeClaimKind: KindDefinition<PersistentVolumeClaim> = {
  group: '',
  version: 'v1',
  kind: 'PersistentVolumeClaim',
  plural: 'persistentvolumeclaims',
  singular: 'persistentvolumeclaim',
  shortNames: ['pvc'],
  categories: [],
  namespaced: true,
  schema: 'PersistentVolumeClaim',
  defaults({ spec }) {
    if (spec !== undefined) spec.volumeMode ??= 'Filesystem';
  },
  prepareForCreate(claim) {
    claim.status = { phase: 'Pending' };
    const finalizers = claim.metadata.finalizers ?? [];
    if (!finalizers.includes(CLAIM_PROTECTION)) claim.metadata.finalizers = [...finalizers, CLAIM_PROTECTION];
  },
  prepareForUpdate(claim, old) {
    if (old.status === undefined) delete claim.status;
    else claim.status = old.status;
  },
  validateCreate: validateClaimCreate,
  validateUpdate: validateClaimUpdate,
  returnsDeletedObject: true,
  subresources: { status: statusSubresource(validateClaimStatus) },
  columns: [
    nameColumn,
    column('Status', 'Whether the claim is bound to a volume.'),
    column('Volume', 'The volume that the claim is bound to.'),
    column('Capacity', 'The capacity of the volume.'),
    column('Access Modes', 'How the volume can be mounted.'),
    column('StorageClass', 'The requested class.'),
    column('VolumeAttributesClass', 'The requested VolumeAttributesClass.'),
    ageColumn,
    column('VolumeMode', 'Whether the volume is a file system or a block device.', { wide: true }),
  ],
  row({ metadata, spec, status }, { now }) {
    const bound = (spec?.volumeName ?? '') !== '';
    return [
      metadata.name,
      metadata.deletionTimestamp === undefined ? (status?.phase ?? '') : 'Terminating',
      spec?.volumeName ?? '',
      bound ? (status?.capacity?.['storage'] ?? '0') : '',
      bound ? accessModesCell(status?.accessModes) : '',
      spec?.storageClassName ?? '',
      spec?.volumeAttributesClassName ?? '<unset>',
      ageCell(metadata.creationTimestamp, now),
      spec?.volumeMode ?? '<unset>',
    ];
  },
};
