/**
 * The Namespace: a scope for names. Deleting a Namespace deletes all objects in it, except PodRecords.
 *
 * Invariants: a new Namespace has the finalizer `kubernetes` in its spec. A deleted Namespace remains until the finalize subresource has
 * removed all finalizers from its spec, and its metadata has no finalizers either.
 * Source: pkg/registry/core/namespace and pkg/apis/core of v1.33.
 */
import { type FieldError, invalid } from '../../../../machinery/field-error.ts';
import { dns1123LabelErrors, qualifiedNameErrors } from '../../../../machinery/names.ts';
import { validateObjectMeta, validateObjectMetaUpdate } from '../../../../machinery/object-meta.ts';
import type { Namespace } from '../../../generated/types.ts';
import type { KindDefinition } from '../../../kind.ts';
import { statusSubresource } from '../../../status-subresource.ts';
import { ageCell, ageColumn, column, nameColumn } from '../../../table.ts';

/** The label whose value is the Namespace's name, so that label selectors can select a Namespace by name. */
const NAME_LABEL = 'kubernetes.io/metadata.name';
const STANDARD_FINALIZERS = new Set(['kubernetes', 'orphan', 'foregroundDeletion']);

function validateFinalizers(namespace: Namespace): FieldError[] {
  return (namespace.spec?.finalizers ?? []).flatMap((name) => [
    ...qualifiedNameErrors(name).map((text) => invalid('spec.finalizers', name, text)),
    ...(name.includes('/') || STANDARD_FINALIZERS.has(name)
      ? []
      : [invalid('spec.finalizers', name, 'name is neither a standard finalizer name nor is it fully qualified')]),
  ]);
}

function validateStatusUpdate(namespace: Namespace, old: Namespace): FieldError[] {
  const errors = validateObjectMetaUpdate(namespace.metadata, old.metadata);
  const phase = namespace.status?.phase ?? '';
  if (namespace.metadata.deletionTimestamp === undefined && phase !== 'Active') {
    errors.push(invalid('status.Phase', phase, "may only be 'Active' if `deletionTimestamp` is empty"));
  } else if (namespace.metadata.deletionTimestamp !== undefined && phase !== 'Terminating') {
    errors.push(invalid('status.Phase', phase, "may only be 'Terminating' if `deletionTimestamp` is not empty"));
  }
  return errors;
}

function setNameLabel({ metadata }: Namespace): void {
  if (metadata.name) metadata.labels = { ...metadata.labels, [NAME_LABEL]: metadata.name };
}

export const namespaceKind: KindDefinition<Namespace> = {
  group: '',
  version: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  singular: 'namespace',
  shortNames: ['ns'],
  categories: [],
  namespaced: false,
  schema: 'Namespace',
  defaults: setNameLabel,
  prepareForCreate(namespace) {
    // If the name was generated, it was not known when the defaults were set.
    setNameLabel(namespace);
    const finalizers = namespace.spec?.finalizers ?? [];
    namespace.spec = { finalizers: finalizers.includes('kubernetes') ? finalizers : [...finalizers, 'kubernetes'] };
    namespace.status = { phase: 'Active' };
  },
  prepareForUpdate(namespace, old) {
    namespace.spec = { ...namespace.spec, finalizers: old.spec?.finalizers };
    namespace.status = old.status;
  },
  validateCreate: (namespace) => [
    ...validateObjectMeta(namespace.metadata, { namespaced: false, nameErrors: dns1123LabelErrors }),
    ...validateFinalizers(namespace),
  ],
  validateUpdate: (namespace, old) => validateObjectMetaUpdate(namespace.metadata, old.metadata),
  subresources: {
    status: statusSubresource(validateStatusUpdate),
    finalize: {
      verbs: ['update'],
      apply: (old, body) => ({ ...old, spec: (body as Namespace).spec }),
      validate: (namespace, old) => [
        ...validateObjectMetaUpdate(namespace.metadata, old.metadata),
        ...validateFinalizers(namespace),
      ],
    },
  },
  deletion: (namespace) =>
    (namespace.spec?.finalizers ?? []).length > 0 ? { now: false, graceSeconds: 0 } : { now: true },
  selectableFields: (namespace) => ({ 'status.phase': namespace.status?.phase ?? '' }),
  columns: [nameColumn, column('Status', 'Active, or Terminating while the Namespace is being deleted.'), ageColumn],
  row: ({ metadata, status }, { now }) => [
    metadata.name,
    status?.phase ?? '',
    ageCell(metadata.creationTimestamp, now),
  ],
};
