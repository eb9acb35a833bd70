/** The PersistentVolume: storage that outlives Pods. Source: pkg/registry/core/persistentvolume and pkg/apis/core of v1.33. */
import { kind } from '../../../declaration.ts';
import type { PersistentVolume } from '../../../generated/types.ts';
import { ageColumn, column, nameColumn } from '../../../table.ts';
import { accessModesCell } from './access-modes.ts';
import { validateVolume, volumeUpdateRules } from './validation.ts';

/** The finalizer that prevents the deletion of a volume while the volume is bound to a claim. */
export const VOLUME_PROTECTION = 'kubernetes.io/pv-protection';

export const persistentVolumeKind = kind<PersistentVolume>('v1', 'PersistentVolume', {
  scope: 'Cluster',
  shortNames: ['pv'],
  defaults({ spec }) {
    if (spec === undefined) return;
    spec.persistentVolumeReclaimPolicy ??= 'Retain';
    spec.volumeMode ??= 'Filesystem';
    if (spec.hostPath !== undefined) spec.hostPath.type ??= '';
  },
  status: {
    initial: () => ({ phase: 'Pending' }),
    rules: [validateVolume, ...volumeUpdateRules],
  },
  prepareForCreate({ metadata }) {
    const finalizers = metadata.finalizers ?? [];
    if (!finalizers.includes(VOLUME_PROTECTION)) metadata.finalizers = [...finalizers, VOLUME_PROTECTION];
  },
  rules: [validateVolume, ...volumeUpdateRules],
  returnsDeletedObject: true,
  columns: [
    nameColumn,
    column('Capacity', 'The capacity of the volume.', ({ spec }) => spec?.capacity?.['storage'] ?? ''),
    column('Access Modes', 'How the volume can be mounted.', ({ spec }) => accessModesCell(spec?.accessModes)),
    column(
      'Reclaim Policy',
      'What happens to the volume after its claim is deleted.',
      ({ spec }) => spec?.persistentVolumeReclaimPolicy ?? '',
    ),
    column('Status', 'Whether the volume is bound to a claim.', ({ metadata, status }) =>
      metadata.deletionTimestamp === undefined ? (status?.phase ?? '') : 'Terminating',
    ),
    column('Claim', 'The claim that the volume is bound to.', ({ spec }) =>
      spec?.claimRef === undefined ? '' : `${spec.claimRef.namespace}/${spec.claimRef.name}`,
    ),
    column('StorageClass', 'The class of the volume.', ({ spec }) => spec?.storageClassName ?? ''),
    column(
      'VolumeAttributesClass',
      'The VolumeAttributesClass of the volume.',
      ({ spec }) => spec?.volumeAttributesClassName ?? '<unset>',
    ),
    column('Reason', 'The reason for the current status.', ({ status }) => status?.reason ?? ''),
    ageColumn,
    column(
      'VolumeMode',
      'Whether the volume is a file system or a block device.',
      ({ spec }) => spec?.volumeMode ?? '<unset>',
      { wide: true },
    ),
  ],
});
