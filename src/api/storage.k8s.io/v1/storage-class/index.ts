/**
 * The StorageClass: describes how volumes are provisioned for claims.
 * Source: pkg/registry/storage/storageclass and pkg/apis/storage of v1.33.
 */
import { type FieldError, invalid, required } from '../../../../machinery/field-error.ts';
import { qualifiedNameErrors } from '../../../../machinery/names.ts';
import { kind } from '../../../declaration.ts';
import type { StorageClass } from '../../../generated/types.ts';
import { immutable, oneOf } from '../../../rules.ts';
import { ageColumn, column, nameColumn } from '../../../table.ts';

/** With the value "true", this annotation marks a class as the default for claims without a class. */
const DEFAULT_CLASS = 'storageclass.kubernetes.io/is-default-class';

const RECLAIM_POLICIES = ['Delete', 'Retain'];
const BINDING_MODES = ['Immediate', 'WaitForFirstConsumer'];

export const isDefaultClass = ({ metadata }: StorageClass): boolean => metadata.annotations?.[DEFAULT_CLASS] === 'true';

/**
 * The name of the newest class that is marked as default or, among equally new ones, the name that sorts first; undefined if no class is
 * marked.
 */
export function defaultClassName(classes: readonly StorageClass[]): string | undefined {
  let best: StorageClass | undefined;
  for (const each of classes) if (isDefaultClass(each) && (best === undefined || precedes(each, best))) best = each;
  return best?.metadata.name;
}

function precedes({ metadata: a }: StorageClass, { metadata: b }: StorageClass): boolean {
  const [madeA, madeB] = [a.creationTimestamp ?? '', b.creationTimestamp ?? ''];
  return madeA === madeB ? a.name < b.name : madeA > madeB;
}

function validateProvisioner({ provisioner = '' }: StorageClass): FieldError[] {
  if (provisioner === '') return [required('provisioner')];
  return qualifiedNameErrors(provisioner.toLowerCase()).map((text) => invalid('provisioner', provisioner, text));
}

export const storageClassKind = kind<StorageClass>('storage.k8s.io/v1', 'StorageClass', {
  scope: 'Cluster',
  shortNames: ['sc'],
  defaults(storageClass) {
    storageClass.reclaimPolicy ??= 'Delete';
    storageClass.volumeBindingMode ??= 'Immediate';
  },
  rules: [
    validateProvisioner,
    oneOf('reclaimPolicy', RECLAIM_POLICIES),
    oneOf('volumeBindingMode', BINDING_MODES),
    immutable('parameters', 'updates to parameters are forbidden.'),
    immutable('provisioner', 'updates to provisioner are forbidden.'),
    immutable('reclaimPolicy'),
    immutable('volumeBindingMode'),
  ],
  returnsDeletedObject: true,
  columns: [
    {
      ...nameColumn,
      cell: (storageClass) =>
        isDefaultClass(storageClass) ? `${storageClass.metadata.name} (default)` : storageClass.metadata.name,
    },
    column('Provisioner', 'The provisioner of the volumes.', ({ provisioner }) => provisioner),
    column('ReclaimPolicy', 'What happens to a volume after its claim is deleted.', (sc) => sc.reclaimPolicy ?? ''),
    column('VolumeBindingMode', 'When a claim is bound to a volume.', (sc) => sc.volumeBindingMode ?? ''),
    column('AllowVolumeExpansion', 'Whether claims can be expanded.', (sc) => String(sc.allowVolumeExpansion ?? false)),
    ageColumn,
  ],
});
