import { describe, expect, it } from 'vitest';
import { fieldErrorText } from '../../../../machinery/field-error.ts';
import { created, headings, row, updated } from '../../../testing.ts';
import { persistentVolumeClaimKind } from './index.ts';

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
