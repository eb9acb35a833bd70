/**
 * Validates the metadata that all kinds share.
 * Source: k8s.io/apimachinery/pkg/api/validation, objectmeta.go, of v1.33 (behavior and wording).
 */
import { type FieldError, forbidden, invalid, required, tooLong } from './field-error.ts';
import type { ObjectMeta, OwnerReference } from './meta.ts';
import { dns1123LabelErrors, labelValueErrors, type NameErrors, prefixErrors, qualifiedNameErrors } from './names.ts';

/** The maximum total length of an object's annotation keys and values, in UTF-8 bytes. */
export const ANNOTATIONS_LIMIT_BYTES = 256 * 1024;

export const IMMUTABLE_TEXT = 'field is immutable';

const worded = (field: string, value: unknown, texts: string[]): FieldError[] =>
  texts.length === 0 ? [] : texts.map((text) => invalid(field, value, text));

export function validateLabels(labels: Record<string, string> | undefined, field: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const [key, value] of Object.entries(labels ?? {})) {
    errors.push(...worded(field, key, qualifiedNameErrors(key)), ...worded(field, value, labelValueErrors(value)));
  }
  return errors;
}

export function validateAnnotations(annotations: Record<string, string> | undefined, field: string): FieldError[] {
  const errors: FieldError[] = [];
  let bytes = 0;
  for (const [key, value] of Object.entries(annotations ?? {})) {
    errors.push(...worded(field, key, qualifiedNameErrors(key.toLowerCase())));
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value);
  }
  if (bytes > ANNOTATIONS_LIMIT_BYTES) errors.push(tooLong(field, ANNOTATIONS_LIMIT_BYTES));
  return errors;
}

function validateOwnerReference(owner: OwnerReference, field: string): FieldError[] {
  const errors: FieldError[] = [];
  const { apiVersion = '', kind = '', name = '', uid = '' } = owner;
  // As in upstream, an apiVersion that cannot be parsed has no version.
  const [version = '', , ...rest] = apiVersion.split('/').reverse();
  if (version === '' || rest.length > 0)
    errors.push(invalid(`${field}.apiVersion`, apiVersion, 'version must not be empty'));
  if (kind === '') errors.push(invalid(`${field}.kind`, kind, 'kind must not be empty'));
  if (name === '') errors.push(invalid(`${field}.name`, name, 'name must not be empty'));
  if (uid === '') errors.push(invalid(`${field}.uid`, uid, 'uid must not be empty'));
  if (apiVersion === 'v1' && kind === 'Event') {
    errors.push(invalid(field, owner, '/v1, Kind=Event is disallowed from being an owner'));
  }
  return errors;
}

function validateOwnerReferences(owners: OwnerReference[] | undefined, field: string): FieldError[] {
  const errors: FieldError[] = [];
  let controller: string | undefined;
  for (const owner of owners ?? []) {
    errors.push(...validateOwnerReference(owner, field));
    if (owner.controller !== true) continue;
    const current = `${owner.kind}/${owner.name}`;
    if (controller !== undefined) {
      const text = `Only one reference can have Controller set to true. Found "true" in references for ${controller} and ${current}`;
      errors.push(invalid(field, owners, text));
      // The error quotes all owners, so it is reported only once. The remaining owners are not validated.
      break;
    }
    controller = current;
  }
  return errors;
}

function validateFinalizers(finalizers: string[] | undefined, field: string): FieldError[] {
  const errors = (finalizers ?? []).flatMap((name) => worded(field, name, qualifiedNameErrors(name)));
  if (finalizers?.includes('orphan') && finalizers.includes('foregroundDeletion')) {
    errors.push(invalid(field, finalizers, 'finalizer orphan and foregroundDeletion cannot be both set'));
  }
  return errors;
}

export interface ObjectMetaRules {
  namespaced: boolean;
  nameErrors: NameErrors;
  /** Default: the format of names, but a trailing dash is allowed. */
  generateNameErrors?: NameErrors;
}

/** Validates the metadata of a new object. The name of a generateName must already have been generated. */
export function validateObjectMeta(meta: ObjectMeta, rules: ObjectMetaRules): FieldError[] {
  const { namespaced, nameErrors, generateNameErrors = (prefix) => prefixErrors(nameErrors, prefix) } = rules;
  const errors: FieldError[] = [];
  if (meta.generateName) {
    errors.push(...worded('metadata.generateName', meta.generateName, generateNameErrors(meta.generateName)));
  }
  if (!meta.name) errors.push(required('metadata.name', 'name or generateName is required'));
  else errors.push(...worded('metadata.name', meta.name, nameErrors(meta.name)));
  if (namespaced) {
    if (!meta.namespace) errors.push(required('metadata.namespace'));
    else errors.push(...worded('metadata.namespace', meta.namespace, dns1123LabelErrors(meta.namespace)));
  } else if (meta.namespace) {
    errors.push(forbidden('metadata.namespace', 'not allowed on this type'));
  }
  if ((meta.generation ?? 0) < 0) {
    errors.push(invalid('metadata.generation', meta.generation, 'must be greater than or equal to 0'));
  }
  errors.push(...validateLabels(meta.labels, 'metadata.labels'));
  errors.push(...validateAnnotations(meta.annotations, 'metadata.annotations'));
  errors.push(...validateOwnerReferences(meta.ownerReferences, 'metadata.ownerReferences'));
  errors.push(...validateFinalizers(meta.finalizers, 'metadata.finalizers'));
  return errors;
}

const immutableFields = [
  'name',
  'namespace',
  'uid',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
] as const;

export function validateObjectMetaUpdate(meta: ObjectMeta, old: ObjectMeta): FieldError[] {
  const errors: FieldError[] = [];
  if (old.deletionTimestamp !== undefined) {
    const before = new Set(old.finalizers);
    const added = (meta.finalizers ?? []).filter((name) => !before.has(name)).sort();
    if (added.length > 0) {
      // Upstream prints the list as Go source.
      const list = `[]string{${added.map((name) => JSON.stringify(name)).join(', ')}}`;
      const text = `no new finalizers can be added if the object is being deleted, found new finalizers ${list}`;
      errors.push(forbidden('metadata.finalizers', text));
    }
  }
  if (!meta.resourceVersion) {
    errors.push(invalid('metadata.resourceVersion', meta.resourceVersion ?? '', 'must be specified for an update'));
  }
  if ((meta.generation ?? 0) < (old.generation ?? 0)) {
    errors.push(invalid('metadata.generation', meta.generation ?? 0, 'must not be decremented'));
  }
  for (const name of immutableFields) {
    if (meta[name] !== old[name]) errors.push(invalid(`metadata.${name}`, meta[name], IMMUTABLE_TEXT));
  }
  errors.push(...validateLabels(meta.labels, 'metadata.labels'));
  errors.push(...validateAnnotations(meta.annotations, 'metadata.annotations'));
  errors.push(...validateOwnerReferences(meta.ownerReferences, 'metadata.ownerReferences'));
  return errors;
}
