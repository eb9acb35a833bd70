/**
 * The Namespace: a scope for names. Deleting a Namespace deletes all objects in it, except PodRecords.
 *
 * Invariants: a new Namespace has the finalizer `kubernetes` in its spec. A deleted Namespace remains until the finalize subresource has
 * removed all finalizers from its spec, and its metadata has no finalizers either.
 * Source: pkg/registry/core/namespace and pkg/apis/core of v1.33.
 */
import { allErrors, type FieldError, invalid } from '../../../../machinery/field-error.ts';
import { dns1123LabelErrors, qualifiedNameErrors } from '../../../../machinery/names.ts';
import { validateObjectMetaUpdate } from '../../../../machinery/object-meta.ts';
import { kind } from '../../../declaration.ts';
import type { Namespace } from '../../../generated/types.ts';
import { onCreate } from '../../../rules.ts';
import { ageColumn, column, nameColumn } from '../../../table.ts';

/** The value of this label is the Namespace's name, so that label selectors can select a Namespace by name. */
const NAME_LABEL = 'kubernetes.io/metadata.name';
const STANDARD_FINALIZERS = new Set(['kubernetes', 'orphan', 'foregroundDeletion']);

function validateFinalizers(namespace: Namespace): FieldError[] {
  return (namespace.spec?.finalizers ?? []).flatMap((name) =>
    allErrors(
      qualifiedNameErrors(name).map((text) => invalid('spec.finalizers', name, text)),
      name.includes('/') || STANDARD_FINALIZERS.has(name)
        ? []
        : [invalid('spec.finalizers', name, 'name is neither a standard finalizer name nor is it fully qualified')],
    ),
  );
}

function validateStatus(namespace: Namespace): FieldError[] {
  const errors: FieldError[] = [];
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

export const namespaceKind = kind<Namespace>('v1', 'Namespace', {
  scope: 'Cluster',
  shortNames: ['ns'],
  names: dns1123LabelErrors,
  defaults: setNameLabel,
  status: { initial: () => ({ phase: 'Active' }), rules: [validateStatus] },
  prepareForCreate(namespace) {
    // Set the label again, because a generated name was not known when the defaults were set.
    setNameLabel(namespace);
    const finalizers = namespace.spec?.finalizers ?? [];
    namespace.spec = { finalizers: finalizers.includes('kubernetes') ? finalizers : [...finalizers, 'kubernetes'] };
  },
  prepareForUpdate(namespace, old) {
    namespace.spec = { ...namespace.spec, finalizers: old.spec?.finalizers };
  },
  // An update cannot change the finalizers, so they are validated only on create and in the subresource finalize.
  rules: [onCreate(validateFinalizers)],
  subresources: {
    finalize: {
      verbs: ['update'],
      apply: (old, body) => ({ ...old, spec: (body as Namespace).spec }),
      validate: (namespace, old) =>
        allErrors(validateObjectMetaUpdate(namespace.metadata, old.metadata), validateFinalizers(namespace)),
    },
  },
  // Like upstream, do not allow one request to delete all Namespaces.
  withoutVerbs: ['deletecollection'],
  // Admission rejects new objects in a Namespace with this phase.
  terminating: (namespace) => ({ ...namespace, status: { ...namespace.status, phase: 'Terminating' } }),
  deletion: (namespace) =>
    (namespace.spec?.finalizers ?? []).length > 0 ? { now: false, graceSeconds: 0 } : { now: true },
  selectableFields: (namespace) => ({ 'status.phase': namespace.status?.phase ?? '' }),
  columns: [
    nameColumn,
    column(
      'Status',
      'Active, or Terminating while the Namespace is being deleted.',
      ({ status }) => status?.phase ?? '',
    ),
    ageColumn,
  ],
});
