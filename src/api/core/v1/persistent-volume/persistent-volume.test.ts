import { describe, expect, it } from 'vitest';
import { created, headings, row, updated } from '../../../testing.ts';
import { persistentVolumeKind } from './index.ts';

const spec = { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/x' } };

describe('a new PersistentVolume', () => {
  it('a new PersistentVolume has its defaults, the protection finalizer and the phase Pending', () => {
    const { object, errors } = created(persistentVolumeKind, { spec, status: { phase: 'Bound' } });
    expect(errors).toEqual([]);
    expect(object).toMatchObject({
      metadata: { finalizers: ['kubernetes.io/pv-protection'] },
      spec: { persistentVolumeReclaimPolicy: 'Retain', volumeMode: 'Filesystem', hostPath: { path: '/x', type: '' } },
      status: { phase: 'Pending' },
    });
  });
  it.each<[string, object, string[]]>([
    [
      'without capacity and access modes',
      { capacity: {}, accessModes: [] },
      ['spec.accessModes: Required value', 'spec.capacity: Required value'],
    ],
    [
      'with a capacity of 0',
      { capacity: { storage: '0' } },
      ['spec.capacity[storage]: Invalid value: "0": must be greater than zero'],
    ],
    ['without a source', { hostPath: undefined }, ['spec: Required value: must specify a volume type']],
    [
      'with two sources',
      { nfs: { server: 's', path: '/' } },
      ['spec.nfs: Forbidden: may not specify more than 1 volume type'],
    ],
    [
      'with .. in the path',
      { hostPath: { path: '/a/../b' } },
      ['spec.hostPath.path: Invalid value: "/a/../b": must not contain \'..\''],
    ],
    [
      'with a local source and without node affinity',
      { hostPath: undefined, local: { path: '/x' } },
      ['spec.nodeAffinity: Required value: Local volume requires node affinity'],
    ],
    [
      'with an unknown type of path',
      { hostPath: { path: '/x', type: 'Odd' } },
      [expect.stringMatching(/^spec.hostPath.type: Unsupported value: "Odd"/)],
    ],
    [
      'with .. in a local path and an empty node affinity',
      { hostPath: undefined, local: { path: '/x/..' }, nodeAffinity: {} },
      [
        'spec.nodeAffinity.required: Required value: must specify required node constraints',
        'spec.local.path: Invalid value: "/x/..": must not contain \'..\'',
      ],
    ],
    [
      'with a node affinity without terms',
      { nodeAffinity: { required: { nodeSelectorTerms: [] } } },
      ['spec.nodeAffinity.required.nodeSelectorTerms: Required value: must have at least one node selector term'],
    ],
    [
      'with an unknown operator in the node affinity',
      { nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'k', operator: 'Odd' }] }] } } },
      [
        'spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].operator: Invalid value: "Odd": not a valid selector operator',
      ],
    ],
    [
      'with ReadWriteOncePod and another access mode',
      { accessModes: ['ReadWriteOncePod', 'ReadWriteOnce'] },
      ['spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes'],
    ],
    ['with ReadWriteOncePod alone', { accessModes: ['ReadWriteOncePod'] }, []],
    ['with the other access modes', { accessModes: ['ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany'] }, []],
    [
      'with another resource than storage',
      { capacity: { cpu: '1' } },
      ['spec.capacity: Unsupported value: {"cpu":"1"}: supported values: "storage"'],
    ],
    [
      'with storage and another resource',
      { capacity: { storage: '1Gi', cpu: '1' } },
      ['spec.capacity: Unsupported value: {"storage":"1Gi","cpu":"1"}: supported values: "storage"'],
    ],
    ['that is the root folder and is retained', { hostPath: { path: '/' } }, []],
    ['that is another folder and is recycled', { persistentVolumeReclaimPolicy: 'Recycle' }, []],
    [
      'that is the root folder and is recycled',
      { hostPath: { path: '/' }, persistentVolumeReclaimPolicy: 'Recycle' },
      ["spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'"],
    ],
    [
      'with an unknown reclaim policy and volume mode',
      { persistentVolumeReclaimPolicy: 'Burn', volumeMode: 'Odd' },
      [
        'spec.persistentVolumeReclaimPolicy: Unsupported value: "Burn": supported values: "Delete", "Recycle", "Retain"',
        'spec.volumeMode: Unsupported value: "Odd": supported values: "Block", "Filesystem"',
      ],
    ],
  ])('the errors of a new PersistentVolume %s are reported', (_, change, expected) => {
    const whole = Object.fromEntries(Object.entries({ ...spec, ...change }).filter(([, value]) => value !== undefined));
    expect(created(persistentVolumeKind, { spec: whole }).errors).toEqual(expected);
  });
});

it('a PersistentVolume must have a spec', () => {
  expect(created(persistentVolumeKind, {}).errors).toEqual(['spec: Required value: must specify a volume type']);
});

it('an update of a PersistentVolume may set its node affinity, but not change it or the volume mode', () => {
  const on = (node: string) => {
    const matchExpressions = [{ key: 'kubernetes.io/hostname', operator: 'In', values: [node] }];
    return { ...spec, nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } } };
  };
  const errors = (from: object, to: object) => updated(persistentVolumeKind, { spec: from }, { spec: to }).errors;
  expect(errors(spec, on('a'))).toEqual([]);
  expect(errors(on('a'), on('a'))).toEqual([]);
  expect(errors(on('a'), on('b'))).toEqual([expect.stringMatching(/^spec.nodeAffinity: .*: field is immutable$/)]);
  expect(errors(on('a'), spec)).toEqual(['spec.nodeAffinity: Invalid value: null: field is immutable']);
  expect(errors(spec, { ...spec, volumeMode: 'Block' })).toEqual([
    'spec.volumeMode: Invalid value: "Block": field is immutable',
  ]);
});

it('an update of a PersistentVolume may not change its source or status', () => {
  const change = { ...spec, hostPath: { path: '/y' } };
  const { object, errors } = updated(persistentVolumeKind, { spec }, { spec: change, status: { phase: 'Bound' } });
  expect(object.status).toEqual({ phase: 'Pending' });
  expect(errors).toEqual([
    'spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation',
  ]);
  expect(
    updated(persistentVolumeKind, { spec }, { spec: { ...spec, persistentVolumeReclaimPolicy: 'Delete' } }).errors,
  ).toEqual([]);
});

it('the table of PersistentVolumes has the columns of v1.33', () => {
  expect(headings(persistentVolumeKind)).toEqual({
    narrow:
      'NAME | CAPACITY | ACCESS MODES | RECLAIM POLICY | STATUS | CLAIM | STORAGECLASS | VOLUMEATTRIBUTESCLASS | REASON | AGE',
    all: 'NAME | CAPACITY | ACCESS MODES | RECLAIM POLICY | STATUS | CLAIM | STORAGECLASS | VOLUMEATTRIBUTESCLASS | REASON | AGE | VOLUMEMODE',
  });
  const metadata = { creationTimestamp: '2026-01-31T11:59:00Z' };
  const full = { ...spec, accessModes: ['ReadWriteMany', 'ReadWriteOnce'], claimRef: { namespace: 'n', name: 'c' } };
  expect(row(persistentVolumeKind, { metadata, spec: full, status: { phase: 'Bound' } })).toEqual([
    'a',
    '1Gi',
    'RWO,RWX',
    'Retain',
    'Bound',
    'n/c',
    '',
    '<unset>',
    '',
    '60s',
    'Filesystem',
  ]);
});
