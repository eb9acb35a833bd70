/** Validation of PersistentVolumeClaims. Source: pkg/apis/core/validation of v1.33 (behavior and wording). */
import { allErrors, type FieldError, forbidden, invalid, required } from '../../../../machinery/field-error.ts';
import { jsonEqual } from '../../../../machinery/json-value.ts';
import { labelSelectorErrors } from '../../../../machinery/labels.ts';
import { dns1123SubdomainErrors } from '../../../../machinery/names.ts';
import {
  compareQuantities,
  parseQuantity,
  type Quantity,
  quantityOrZero,
  zeroQuantity,
} from '../../../../machinery/quantity.ts';
import type { PersistentVolumeClaim, PersistentVolumeClaimSpec, StorageClass } from '../../../generated/types.ts';
import { validateAccessModes, validateVolumeMode } from '../persistent-volume/access-modes.ts';

function validateRequest(spec: PersistentVolumeClaimSpec): FieldError[] {
  const path = 'spec.resources[storage]';
  const storage = spec.resources?.requests?.['storage'];
  if (storage === undefined) return [required(path)];
  const quantity = parseQuantity(String(storage));
  return quantity === undefined || compareQuantities(quantity, zeroQuantity) <= 0
    ? [invalid(path, storage, 'must be greater than zero')]
    : [];
}

function validateSpec(spec: PersistentVolumeClaimSpec): FieldError[] {
  const className = spec.storageClassName ?? '';
  return allErrors(
    labelSelectorErrors(spec.selector, 'spec.selector'),
    validateAccessModes(spec.accessModes, 'at least 1 access mode is required'),
    validateRequest(spec),
    className === ''
      ? []
      : dns1123SubdomainErrors(className).map((text) => invalid('spec.storageClassName', className, text)),
    validateVolumeMode(spec.volumeMode),
  );
}

export const validateClaim = ({ spec = {} }: PersistentVolumeClaim): FieldError[] => validateSpec(spec);

/**
 * Rejects changes of the spec, except setting an absent volume name or class, and changing the requested size of a bound claim. A lower
 * size must still be greater than the capacity in the status.
 */
export function validateClaimUpdate(claim: PersistentVolumeClaim, old: PersistentVolumeClaim): FieldError[] {
  const errors: FieldError[] = [];
  const [spec = {}, oldSpec = {}] = [claim.spec, old.spec];
  const allowed = { ...spec };
  // The class may be set later, because the claim may be older than the default class.
  if (!oldSpec.volumeName) setOrDelete(allowed, 'volumeName', oldSpec.volumeName);
  if (oldSpec.storageClassName === undefined) setOrDelete(allowed, 'storageClassName', undefined);
  const growth = compareQuantities(requestOf(claim), requestOf(old));
  // The size may change only if the claim is bound, but the same size may always be written in another format.
  const sizeMayDiffer = growth === 0 || claim.status?.phase === 'Bound';
  const size = oldSpec.resources?.requests?.['storage'];
  if (sizeMayDiffer && size !== undefined && spec.resources?.requests !== undefined)
    allowed.resources = { ...spec.resources, requests: { ...spec.resources.requests, storage: size } };
  if (!jsonEqual(allowed, oldSpec)) {
    errors.push(
      forbidden(
        'spec',
        'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims',
      ),
    );
  }
  const capacity = quantityOrZero(old.status?.capacity?.['storage']);
  if (growth < 0 && compareQuantities(requestOf(claim), capacity) <= 0)
    errors.push(forbidden('spec.resources.requests.storage', 'field can not be less than status.capacity'));
  return errors;
}

const requestOf = ({ spec }: PersistentVolumeClaim): Quantity => quantityOrZero(spec?.resources?.requests?.['storage']);

/**
 * Returns why admission rejects the update of the claim; undefined if the requested size does not grow. No claim can grow: lifepod's
 * volumes are folders and cannot be resized. `storageClass`: the class that the claim names; undefined if the claim names none or the class
 * does not exist. Source: the admission plugin PersistentVolumeClaimResize.
 */
export function growthRefusal(
  claim: PersistentVolumeClaim,
  old: PersistentVolumeClaim,
  storageClass: StorageClass | undefined,
): string | undefined {
  if (compareQuantities(requestOf(claim), requestOf(old)) <= 0) return undefined;
  return storageClass?.allowVolumeExpansion === true
    ? 'volume plugin does not support resize'
    : 'only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize';
}

function setOrDelete<T, K extends keyof T>(target: T, key: K, value: T[K] | undefined): void {
  if (value === undefined) delete target[key];
  else target[key] = value;
}

export const validateClaimStatus = (claim: PersistentVolumeClaim, old: PersistentVolumeClaim): FieldError[] =>
  old.spec?.resources !== undefined && (claim.spec?.accessModes ?? []).length === 0
    ? [required('Spec.AccessModes')]
    : [];
