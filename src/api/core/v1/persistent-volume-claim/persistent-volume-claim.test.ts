import { describe, expect, it } from 'vitest';
import { fieldErrorText } from '../../../../machinery/field-error.ts';
import { created, headings, row, updated } from '../../../testing.ts';
import { persistentVolumeClaimKind } from './index.ts';
import { growthRefusal } from './validation.ts';

const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, storageClassName: 'x' };
const IMMUTABLE =
  'spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims';

describe('a new claim', () => {
  it('a new claim is Pending and has the protection finalizer', () => {
    const { object, errors } = created(persistentVolumeClaimKind, { spec, status: { phase: 'Bound' } });
    expect(errors).toEqual([]);
    expect(object).toMatchObject({
      metadata: { finalizers: ['kubernetes.io/pvc-protection'] },
      spec: { volumeMode: 'Filesystem' },
      status: { phase: 'Pending' },
    });
  });
  it.each<[string, object, string[]]>([
    [
      'without access modes and a request',
      { accessModes: [], resources: {} },
      [
        'spec.accessModes: Required value: at least 1 access mode is required',
        'spec.resources[storage]: Required value',
      ],
    ],
    [
      'with an unknown access mode',
      { accessModes: ['Any'] },
      [
        'spec.accessModes: Unsupported value: "Any": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"',
      ],
    ],
    [
      'with a request of 0',
      { resources: { requests: { storage: '0' } } },
      ['spec.resources[storage]: Invalid value: "0": must be greater than zero'],
    ],
    ['without a class', { storageClassName: '' }, []],
    [
      'with a class, a selector and a volume mode that are not valid',
      { storageClassName: 'A', selector: { matchExpressions: [{ key: 'k', operator: 'Odd' }] }, volumeMode: 'Odd' },
      [
        'spec.selector.matchExpressions[0].operator: Invalid value: "Odd": not a valid selector operator',
        expect.stringMatching(/^spec.storageClassName: Invalid value: "A": a lowercase RFC 1123 subdomain must/),
        'spec.volumeMode: Unsupported value: "Odd": supported values: "Block", "Filesystem"',
      ],
    ],
    [
      'with a negative request',
      { resources: { requests: { storage: '-1' } } },
      ['spec.resources[storage]: Invalid value: "-1": must be greater than zero'],
    ],
  ])('the errors of a new claim %s are reported', (_, change, expected) => {
    expect(created(persistentVolumeClaimKind, { spec: { ...spec, ...change } }).errors).toEqual(expected);
  });
});

describe('an update of a claim', () => {
  it.each<[string, object, object, string[]]>([
    ['may bind it to a volume', {}, { volumeName: 'v' }, []],
    ['may not bind it to another volume', { volumeName: 'v' }, { volumeName: 'w' }, [IMMUTABLE]],
    ['may set an absent class', { storageClassName: undefined }, { storageClassName: 'y' }, []],
    ['may not change the class', {}, { storageClassName: 'y' }, [IMMUTABLE]],
    ['may not change the access modes', {}, { accessModes: ['ReadOnlyMany'] }, [IMMUTABLE]],
    ['may not request more', {}, { resources: { requests: { storage: '2Gi' } } }, [IMMUTABLE]],
    ['may write the same request in another unit', {}, { resources: { requests: { storage: '1024Mi' } } }, []],
  ])('an update of an unbound claim %s', (_, from, to, expected) => {
    const old = { spec: { ...spec, ...from } };
    expect(updated(persistentVolumeClaimKind, old, { spec: { ...spec, ...from, ...to } }).errors).toEqual(expected);
  });
});

it.each<[string, object, string[]]>([
  ['may request more', { requests: { storage: '2Gi' } }, []],
  ['may not set limits', { requests: { storage: '2Gi' }, limits: { storage: '2Gi' } }, [IMMUTABLE]],
  [
    'may not request less than its capacity',
    { requests: { storage: '1Mi' } },
    ['spec.resources.requests.storage: Forbidden: field can not be less than status.capacity'],
  ],
])('an update of a bound claim %s', (_, resources, expected) => {
  const metadata = { name: 'a', namespace: 'n', uid: 'u', resourceVersion: '1' };
  const status = { phase: 'Bound', capacity: { storage: '1Gi' } };
  const bound = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata, spec, status };
  expect(
    persistentVolumeClaimKind.validateUpdate({ ...bound, spec: { ...spec, resources } }, bound).map(fieldErrorText),
  ).toEqual(expected);
});

it('an update of a claim keeps the status', () => {
  const { object } = updated(persistentVolumeClaimKind, { spec }, { spec, status: { phase: 'Bound' } });
  expect(object.status).toEqual({ phase: 'Pending' });
});

describe('the size of a bound claim', () => {
  const metadata = { name: 'a', namespace: 'n', uid: 'u', resourceVersion: '1' };
  const claim = (storage: string, more: object = {}) => ({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata,
    spec: { ...spec, resources: { requests: { storage } }, ...more },
    status: { phase: 'Bound', capacity: { storage: '1Gi' } },
  });
  it.each([
    ['2Gi', true],
    ['1025Mi', true],
    ['1Gi', false],
  ])('the request of a claim with a capacity of 1Gi may shrink from 2Gi to %s: %s', (storage, allowed) => {
    const errors = persistentVolumeClaimKind.validateUpdate(claim(storage), claim('2Gi')).map(fieldErrorText);
    expect(errors).toEqual(
      allowed ? [] : ['spec.resources.requests.storage: Forbidden: field can not be less than status.capacity'],
    );
  });
  it('a claim cannot grow, because folders cannot be resized', () => {
    const storageClass = { apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', metadata: { name: 'x' } };
    const expanding = { ...storageClass, provisioner: 'p', allowVolumeExpansion: true };
    expect(growthRefusal(claim('1Gi'), claim('1Gi'), expanding)).toBeUndefined();
    expect(growthRefusal(claim('1Gi'), claim('2Gi'), expanding)).toBeUndefined();
    expect(growthRefusal(claim('2Gi'), claim('1Gi'), expanding)).toBe('volume plugin does not support resize');
    expect(growthRefusal(claim('2Gi'), claim('1Gi'), undefined)).toMatch(/^only dynamically provisioned pvc can/);
  });
  it('a write of the status needs a claim with access modes', () => {
    const validate = (changed: object) =>
      persistentVolumeClaimKind.subresources['status']?.validate?.(claim('1Gi', changed), claim('1Gi', changed));
    expect(validate({})).toEqual([]);
    expect(validate({ accessModes: [] })?.map(fieldErrorText)).toEqual(['Spec.AccessModes: Required value']);
    expect(validate({ accessModes: [], resources: undefined })).toEqual([]);
  });
});

it('a claim warns about sizes that are not whole bytes, and about the annotation with the class', () => {
  const resources = { requests: { storage: '1500m' }, limits: { storage: '100m' } };
  const annotations = { 'volume.beta.kubernetes.io/storage-class': 'x' };
  const { object } = created(persistentVolumeClaimKind, { metadata: { annotations }, spec: { ...spec, resources } });
  expect(persistentVolumeClaimKind.warnings?.(object)).toEqual([
    'metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; use "storageClassName" attribute instead',
    'spec.resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer',
    'spec.resources.limits[storage]: fractional byte value "100m" is invalid, must be an integer',
  ]);
  expect(persistentVolumeClaimKind.warnings?.(created(persistentVolumeClaimKind, { spec }).object)).toEqual([]);
});

it('the table of claims has the columns of v1.33', () => {
  expect(headings(persistentVolumeClaimKind).all).toBe(
    'NAME | STATUS | VOLUME | CAPACITY | ACCESS MODES | STORAGECLASS | VOLUMEATTRIBUTESCLASS | AGE | VOLUMEMODE',
  );
  const status = { phase: 'Bound', capacity: { storage: '2Gi' }, accessModes: ['ReadWriteOncePod'] };
  const metadata = { creationTimestamp: '2026-01-31T11:59:00Z' };
  expect(row(persistentVolumeClaimKind, { metadata, spec: { ...spec, volumeName: 'v' }, status })).toEqual([
    'a',
    'Bound',
    'v',
    '2Gi',
    'RWOP',
    'x',
    '<unset>',
    '60s',
    'Filesystem',
  ]);
  expect(row(persistentVolumeClaimKind, { metadata, spec, status: { phase: 'Pending' } }).slice(1, 5)).toEqual([
    'Pending',
    '',
    '',
    '',
  ]);
});
