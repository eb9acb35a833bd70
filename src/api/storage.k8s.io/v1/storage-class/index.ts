/**
 * The StorageClass: describes how volumes are provisioned for claims.
 * Source: pkg/registry/storage/storageclass and pkg/apis/storage of v1.33.
 */
import { type FieldError, forbidden, invalid, notSupported, required } from '../../../../machinery/field-error.ts';
import { jsonEqual } from '../../../../machinery/json-value.ts';
import { dns1123SubdomainErrors, qualifiedNameErrors } from '../../../../machinery/names.ts';
import { IMMUTABLE_TEXT, validateObjectMeta, validateObjectMetaUpdate } from '../../../../machinery/object-meta.ts';
import type { StorageClass } from '../../../generated/types.ts';
import type { KindDefinition } from '../../../kind.ts';
import { ageCell, ageColumn, column, nameColumn } from '../../../table.ts';

/** An annotation with this key and the value "true" marks a class as the default for claims without a class. */
const DEFAULT_CLASS = 'storageclass.kubernetes.io/is-default-class';

const RECLAIM_POLICIES = ['Delete', 'Retain'];
const BINDING_MODES = ['Immediate', 'WaitForFirstConsumer'];

export const isDefaultClass = ({ metadata }: StorageClass): boolean => metadata.annotations?.[DEFAULT_CLASS] === 'true';

/** The name of the class for claims without a class: the newest class that is marked as default; undefined if there is none. */
export function defaultClassName(classes: readonly StorageClass[]): string | undefined {
  let best: StorageClass | undefined;
  for (const each of classes) if (isDefaultClass(each) && (best === undefined || precedes(each, best))) best = each;
  return best?.metadata.name;
}

/** Whether the first class takes precedence: it is newer, or it is equally old and its name sorts first. */
function precedes({ metadata: a }: StorageClass, { metadata: b }: StorageClass): boolean {
  const [madeA, madeB] = [a.creationTimestamp ?? '', b.creationTimestamp ?? ''];
  return madeA === madeB ? a.name < b.name : madeA > madeB;
}

function validate(storageClass: StorageClass): FieldError[] {
  const { provisioner = '', reclaimPolicy, volumeBindingMode } = storageClass;
  const errors: FieldError[] = [];
  if (provisioner === '') errors.push(required('provisioner'));
  else {
    errors.push(
      ...qualifiedNameErrors(provisioner.toLowerCase()).map((text) => invalid('provisioner', provisioner, text)),
    );
  }
  if (reclaimPolicy !== undefined && !RECLAIM_POLICIES.includes(reclaimPolicy)) {
    errors.push(notSupported('reclaimPolicy', reclaimPolicy, RECLAIM_POLICIES));
  }
  if (volumeBindingMode !== undefined && !BINDING_MODES.includes(volumeBindingMode)) {
    errors.push(notSupported('volumeBindingMode', volumeBindingMode, BINDING_MODES));
  }
  return errors;
}

function validateUpdate(storageClass: StorageClass, old: StorageClass): FieldError[] {
  const errors = [...validateObjectMetaUpdate(storageClass.metadata, old.metadata), ...validate(storageClass)];
  for (const field of ['parameters', 'provisioner'] as const) {
    if (!jsonEqual(storageClass[field] ?? null, old[field] ?? null)) {
      errors.push(forbidden(field, `updates to ${field} are forbidden.`));
    }
  }
  for (const field of ['reclaimPolicy', 'volumeBindingMode'] as const) {
    if (storageClass[field] !== old[field]) errors.push(invalid(field, storageClass[field], IMMUTABLE_TEXT));
  }
  return errors;
}

export const storageClassKind: KindDefinition<StorageClass> = {
  group: 'storage.k8s.io',
  version: 'v1',
  kind: 'StorageClass',
  plural: 'storageclasses',
  singular: 'storageclass',
  shortNames: ['sc'],
  categories: [],
  namespaced: false,
  schema: 'StorageClass',
  defaults(storageClass) {
    storageClass.reclaimPolicy ??= 'Delete';
    storageClass.volumeBindingMode ??= 'Immediate';
  },
  validateCreate: (storageClass) => [
    ...validateObjectMeta(storageClass.metadata, { namespaced: false, nameErrors: dns1123SubdomainErrors }),
    ...validate(storageClass),
  ],
  validateUpdate,
  returnsDeletedObject: true,
  subresources: {},
  columns: [
    nameColumn,
    column('Provisioner', 'The provisioner of the volumes.'),
    column('ReclaimPolicy', 'What happens to a volume after its claim is deleted.'),
    column('VolumeBindingMode', 'When a claim is bound to a volume.'),
    column('AllowVolumeExpansion', 'Whether claims can be expanded.'),
    ageColumn,
  ],
  row: (storageClass, { now }) => [
    isDefaultClass(storageClass) ? `${storageClass.metadata.name} (default)` : storageClass.metadata.name,
    storageClass.provisioner,
    storageClass.reclaimPolicy ?? '',
    storageClass.volumeBindingMode ?? '',
    String(storageClass.allowVolumeExpansion ?? false),
    ageCell(storageClass.metadata.creationTimestamp, now),
  ],
};
