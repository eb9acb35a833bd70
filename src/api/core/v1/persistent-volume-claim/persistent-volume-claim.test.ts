import { describe, expect, it } from 'vitest';
import { fieldErrorText } from '../../../../machinery/field-error.ts';
import { created, headings, row, updated } from '../../../testing.ts';
import { persistentVolumeClaimKind } from './index.ts';

const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, storageClassName: 'x' };
const IMMUTABLE =
  'spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims';

describe('create', () => {
  it('is pending and protected', () => {
    const { object, errors } = created(persistentVolumeClaimKind, { spec, status: { phase: 'Bound' } });
    expect(errors).toEqual([]);
    expect(object).toMatchObject({
      metadata: { finalizers: ['kubernetes.io/pvc-protection'] },
      spec: { volumeMode: 'Filesystem' },
      status: { phase: 'Pending' },
    });
  });
  it.each<[object, string[]]>([
    [
      { accessModes: [], resources: {} },
      [
        'spec.accessModes: Required value: at least 1 access mode is required',
        'spec.resources[storage]: Required value',
      ],
    ],
    [
      { accessModes: ['Any'] },
      [
        'spec.accessModes: Unsupported value: "Any": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"',
      ],
    ],
    [
      { resources: { requests: { storage: '-1' } } },
      ['spec.resources[storage]: Invalid value: "-1": must be greater than zero'],
    ],
  ])('%j', (change, expected) => {
    expect(created(persistentVolumeClaimKind, { spec: { ...spec, ...change } }).errors).toEqual(expected);
  });
});

describe('update', () => {
  it.each<[object, object, string[]]>([
    [{}, { volumeName: 'v' }, []],
    [{ volumeName: 'v' }, { volumeName: 'w' }, [IMMUTABLE]],
    [{}, { storageClassName: 'y' }, [IMMUTABLE]],
    [{}, { accessModes: ['ReadOnlyMany'] }, [IMMUTABLE]],
    [{}, { resources: { requests: { storage: '2Gi' } } }, [IMMUTABLE]],
    [{}, { resources: { requests: { storage: '1024Mi' } } }, []],
  ])('of %j with %j', (from, to, expected) => {
    const old = { spec: { ...spec, ...from } };
    expect(updated(persistentVolumeClaimKind, old, { spec: { ...spec, ...from, ...to } }).errors).toEqual(expected);
  });
});

it.each<[object, string[]]>([
  [{ requests: { storage: '2Gi' } }, []],
  [{ requests: { storage: '2Gi' }, limits: { storage: '2Gi' } }, [IMMUTABLE]],
  [
    { requests: { storage: '1Mi' } },
    ['spec.resources.requests.storage: Forbidden: field can not be less than status.capacity'],
  ],
])('a bound claim with %j', (resources, expected) => {
  const metadata = { name: 'a', namespace: 'n', uid: 'u', resourceVersion: '1' };
  const status = { phase: 'Bound', capacity: { storage: '1Gi' } };
  const bound = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata, spec, status };
  expect(
    persistentVolumeClaimKind.validateUpdate({ ...bound, spec: { ...spec, resources } }, bound).map(fieldErrorText),
  ).toEqual(expected);
});

it('is shown as kubectl knows it', () => {
  expect(headings(persistentVolumeClaimKind).all).toBe(
    'NAME | STATUS | VOLUME | CAPACITY | ACCESS MODES | STORAGECLASS | VOLUMEATTRIBUTESCLASS | AGE | VOLUMEMODE',
  );
  const status = { phase: 'Bound', capacity: { storage: '2Gi' }, accessModes: ['ReadWriteOncePod'] };
  const metadata = { creationTimestamp: '2026-01-31T11:59:00Z' };
  expect(row(persistentVolumeClaimKind, { metadata, spec: { ...spec, volumeName: 'v' }, status })).toEqual([
    ...['a', 'Bound', 'v', '2Gi', 'RWOP', 'x', '<unset>', '60s', 'Filesystem'],
  ]);
  expect(row(persistentVolumeClaimKind, { metadata, spec, status: { phase: 'Pending' } }).slice(1, 5)).toEqual([
    ...['Pending', '', '', ''],
  ]);
});
