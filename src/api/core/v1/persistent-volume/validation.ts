/** Validation of PersistentVolumes. Source: pkg/apis/core/validation of v1.33 (behavior and wording). */
import {
  allErrors,
  type FieldError,
  forbidden,
  invalid,
  notSupported,
  required,
} from '../../../../machinery/field-error.ts';
import { jsonEqual } from '../../../../machinery/json-value.ts';
import { dns1123SubdomainErrors } from '../../../../machinery/names.ts';
import { IMMUTABLE_TEXT } from '../../../../machinery/object-meta.ts';
import { compareQuantities, parseQuantity, zeroQuantity } from '../../../../machinery/quantity.ts';
import type { PersistentVolume, PersistentVolumeSpec, VolumeNodeAffinity } from '../../../generated/types.ts';
import { immutable, onUpdate, type Rule } from '../../../rules.ts';
import { validateNodeSelector } from '../pod/validation/validate-placement.ts';
import { noBacksteps } from '../pod/validation/validate-values.ts';
import { validateHostPath } from '../pod/validation/validate-volumes.ts';
import { validateAccessModes, validateVolumeMode } from './access-modes.ts';

const RECLAIM_POLICIES = ['Delete', 'Recycle', 'Retain'];

const SOURCES = [
  'awsElasticBlockStore',
  'azureDisk',
  'azureFile',
  'cephfs',
  'cinder',
  'csi',
  'fc',
  'flexVolume',
  'flocker',
  'gcePersistentDisk',
  'glusterfs',
  'hostPath',
  'iscsi',
  'local',
  'nfs',
  'photonPersistentDisk',
  'portworxVolume',
  'quobyte',
  'rbd',
  'scaleIO',
  'storageos',
  'vsphereVolume',
] as const satisfies readonly (keyof PersistentVolumeSpec)[];

const sourcesOf = (spec: PersistentVolumeSpec): (typeof SOURCES)[number][] =>
  SOURCES.filter((source) => spec[source] !== undefined);

function validateCapacity(capacity: PersistentVolumeSpec['capacity'] = {}): FieldError[] {
  const names = Object.keys(capacity);
  if (names.length === 0) return [required('spec.capacity')];
  const errors: FieldError[] = [];
  if (names.length > 1 || names[0] !== 'storage') errors.push(notSupported('spec.capacity', capacity, ['storage']));
  for (const name of names) {
    const quantity = parseQuantity(String(capacity[name]));
    if (quantity === undefined || compareQuantities(quantity, zeroQuantity) <= 0) {
      errors.push(invalid(`spec.capacity[${name}]`, capacity[name], 'must be greater than zero'));
    }
  }
  return errors;
}

function validateSources(spec: PersistentVolumeSpec): FieldError[] {
  const [first, ...others] = sourcesOf(spec);
  if (first === undefined) return [required('spec', 'must specify a volume type')];
  const errors = others.map((name) => forbidden(`spec.${name}`, 'may not specify more than 1 volume type'));
  if (spec.hostPath !== undefined) errors.push(...validateHostPath(spec.hostPath, 'spec.hostPath'));
  if (spec.local !== undefined) {
    const { path } = spec.local;
    errors.push(...(path ? noBacksteps(path, 'spec.local.path') : [required('spec.local.path')]));
    if (spec.nodeAffinity === undefined) {
      errors.push(required('spec.nodeAffinity', 'Local volume requires node affinity'));
    }
  }
  if (spec.hostPath?.path === '/' && spec.persistentVolumeReclaimPolicy === 'Recycle') {
    errors.push(forbidden('spec.persistentVolumeReclaimPolicy', "may not be 'recycle' for a hostPath mount of '/'"));
  }
  return errors;
}

function validateNodeAffinity({ required: selector }: VolumeNodeAffinity): FieldError[] {
  const path = 'spec.nodeAffinity.required';
  return selector === undefined
    ? [required(path, 'must specify required node constraints')]
    : validateNodeSelector(selector, path);
}

function validateSpec(spec: PersistentVolumeSpec | undefined): FieldError[] {
  if (spec === undefined) return [required('spec', 'must specify a volume type')];
  const policy = spec.persistentVolumeReclaimPolicy ?? '';
  const className = spec.storageClassName ?? '';
  return allErrors(
    validateAccessModes(spec.accessModes, ''),
    validateCapacity(spec.capacity),
    policy === '' || RECLAIM_POLICIES.includes(policy)
      ? []
      : [notSupported('spec.persistentVolumeReclaimPolicy', policy, RECLAIM_POLICIES)],
    spec.nodeAffinity === undefined ? [] : validateNodeAffinity(spec.nodeAffinity),
    validateSources(spec),
    className === ''
      ? []
      : dns1123SubdomainErrors(className).map((text) => invalid('spec.storageClassName', className, text)),
    validateVolumeMode(spec.volumeMode),
  );
}

export const validateVolume = ({ spec }: PersistentVolume): FieldError[] => validateSpec(spec);

export const volumeUpdateRules: readonly Rule<PersistentVolume>[] = [
  onUpdate(({ spec = {} }, { spec: oldSpec = {} }) =>
    SOURCES.some((source) => !jsonEqual(spec[source] ?? null, oldSpec[source] ?? null))
      ? [forbidden('spec.persistentvolumesource', 'spec.persistentvolumesource is immutable after creation')]
      : [],
  ),
  immutable('spec.volumeMode'),
  onUpdate(({ spec }, { spec: oldSpec }) =>
    oldSpec?.nodeAffinity !== undefined && !jsonEqual(spec?.nodeAffinity ?? null, oldSpec.nodeAffinity)
      ? [invalid('spec.nodeAffinity', spec?.nodeAffinity ?? null, IMMUTABLE_TEXT)]
      : [],
  ),
];
