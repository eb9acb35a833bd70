/** The PersistentVolume: storage that outlives Pods. Source: pkg/registry/core/persistentvolume and pkg/apis/core of v1.33. */
import type { PersistentVolume } from '../../../generated/types.ts';
import type { KindDefinition } from '../../../kind.ts';
import { statusSubresource } from '../../../status-subresource.ts';
import { ageCell, ageColumn, column, nameColumn } from '../../../table.ts';
import { accessModesCell } from './access-modes.ts';
import { validateVolumeCreate, validateVolumeUpdate } from './validation.ts';

/** The finalizer that prevents the deletion of a volume while the volume is bound to a claim. */
export const VOLUME_PROTECTION = 'kubernetes.io/pv-protection';

export const persistentVolumeKind: KindDefinition<PersistentVolume> = {
  group: '',
  version: 'v1',
  kind: 'PersistentVolume',
  plural: 'persistentvolumes',
  singular: 'persistentvolume',
  shortNames: ['pv'],
  categories: [],
  namespaced: false,
  schema: 'PersistentVolume',
  defaults({ spec }) {
    if (spec === undefined) return;
    spec.persistentVolumeReclaimPolicy ??= 'Retain';
    spec.volumeMode ??= 'Filesystem';
    if (spec.hostPath !== undefined) spec.hostPath.type ??= '';
  },
  prepareForCreate(volume) {
    volume.status = { phase: 'Pending' };
    const finalizers = volume.metadata.finalizers ?? [];
    if (!finalizers.includes(VOLUME_PROTECTION)) volume.metadata.finalizers = [...finalizers, VOLUME_PROTECTION];
  },
  prepareForUpdate(volume, old) {
    if (old.status === undefined) delete volume.status;
    else volume.status = old.status;
  },
  validateCreate: validateVolumeCreate,
  validateUpdate: validateVolumeUpdate,
  returnsDeletedObject: true,
  subresources: { status: statusSubresource(validateVolumeUpdate) },
  columns: [
    nameColumn,
    column('Capacity', 'The capacity of the volume.'),
    column('Access Modes', 'How the volume can be mounted.'),
    column('Reclaim Policy', 'What happens to the volume after its claim is deleted.'),
    column('Status', 'Whether the volume is bound to a claim.'),
    column('Claim', 'The claim that the volume is bound to.'),
    column('StorageClass', 'The class of the volume.'),
    column('VolumeAttributesClass', 'The VolumeAttributesClass of the volume.'),
    column('Reason', 'The reason for the current status.'),
    ageColumn,
    column('VolumeMode', 'Whether the volume is a file system or a block device.', { wide: true }),
  ],
  row: ({ metadata, spec, status }, { now }) => [
    metadata.name,
    spec?.capacity?.['storage'] ?? '',
    accessModesCell(spec?.accessModes),
    spec?.persistentVolumeReclaimPolicy ?? '',
    metadata.deletionTimestamp === undefined ? (status?.phase ?? '') : 'Terminating',
    spec?.claimRef === undefined ? '' : `${spec.claimRef.namespace}/${spec.claimRef.name}`,
    spec?.storageClassName ?? '',
    spec?.volumeAttributesClassName ?? '<unset>',
    status?.reason ?? '',
    ageCell(metadata.creationTimestamp, now),
    spec?.volumeMode ?? '<unset>',
  ],
};
