/** The PersistentVolume: storage that outlives Pods. Source: pkg/registry/core/persistentvolume and pkg/apis/core of v1.33. */
import type { PersistentVolume } from '../../../generated/types.ts';
import type { KindDefinition } from '../../../kind.ts';
import { statusSubresource } from '../../../status-subresource.ts';
import { ageCell, ageColumn, column, nameColumn } from '../../../table.ts';
import { accessModesCell } from './access-modes.ts';
import { validateVolumeCreate, validateVolumeUpdate } from './validation.ts';

/** Keeps a volume while it is bound to a claim. */
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
    column('Capacity', 'How much it holds.'),
    column('Access Modes', 'How it may be mounted.'),
    column('Reclaim Policy', 'What becomes of it when its claim is gone.'),
    column('Status', 'Whether it is bound to a claim.'),
    column('Claim', 'The claim that it is bound to.'),
    column('StorageClass', 'The class that it belongs to.'),
    column('VolumeAttributesClass', 'The attributes that it was given.'),
    column('Reason', 'Why it is as its status says.'),
    ageColumn,
    column('VolumeMode', 'Whether it is a file system or a device.', { wide: true }),
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
