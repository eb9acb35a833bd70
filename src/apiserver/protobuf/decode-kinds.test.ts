/** The field numbers come from upstream's generated.proto files. */
import { expect, test } from 'vitest';
import { typeOfKind } from '../../api/facts/facts.ts';
import { decodeProtobuf } from './decode.ts';
import { type Field, wrapped } from './message-fixture.ts';

type Value = string | number | boolean | Numbered;
/** The values by field number. A field that occurs more than once has a list of its values. */
interface Numbered {
  [number: number]: Value | Value[];
}

const fieldsOf = (values: Numbered): Field[] =>
  Object.entries(values).flatMap(([number, content]) =>
    (Array.isArray(content) ? content : [content]).map(
      (each): Field => [Number(number), typeof each === 'object' ? fieldsOf(each) : each],
    ),
  );

function decoded(group: string, version: string, kind: string, values: Numbered): object {
  const apiVersion = group === '' ? version : `${group}/${version}`;
  return decodeProtobuf(wrapped(apiVersion, kind, fieldsOf(values)), () => typeOfKind(group, version, kind));
}

const metadata: Numbered = { 1: 'one' };
const quantities: Numbered = { 1: 'storage', 2: { 1: '1Gi' } };

test('a PersistentVolume in protobuf keeps its source, capacity and node affinity', () => {
  const spec: Numbered = {
    1: quantities,
    2: { 20: { 1: '/data', 2: 'ext4' } },
    3: ['ReadWriteOnce', 'ReadOnlyMany'],
    4: { 1: 'PersistentVolumeClaim', 2: 'default', 3: 'claim', 4: 'u' },
    5: 'Retain',
    6: 'slow',
    7: 'noatime',
    8: 'Filesystem',
    9: { 1: { 1: { 1: { 1: 'zone', 2: 'In', 3: ['a', 'b'] } } } },
    10: 'gold',
  };
  expect(decoded('', 'v1', 'PersistentVolume', { 1: metadata, 2: spec, 3: { 1: 'Bound' } })).toEqual({
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'one' },
    spec: {
      capacity: { storage: '1Gi' },
      local: { path: '/data', fsType: 'ext4' },
      accessModes: ['ReadWriteOnce', 'ReadOnlyMany'],
      claimRef: { kind: 'PersistentVolumeClaim', namespace: 'default', name: 'claim', uid: 'u' },
      persistentVolumeReclaimPolicy: 'Retain',
      storageClassName: 'slow',
      mountOptions: ['noatime'],
      volumeMode: 'Filesystem',
      nodeAffinity: {
        required: {
          nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In', values: ['a', 'b'] }] }],
        },
      },
      volumeAttributesClassName: 'gold',
    },
    status: { phase: 'Bound' },
  });
});

test('a PersistentVolumeClaim in protobuf keeps its selector, requests, data sources and conditions', () => {
  const spec: Numbered = {
    1: 'ReadWriteOnce',
    2: { 1: quantities, 2: quantities },
    3: 'volume',
    4: { 1: { 1: 'tier', 2: 'fast' } },
    5: 'slow',
    6: 'Block',
    7: { 1: 'example.org', 2: 'Snapshot', 3: 'first' },
    8: { 1: 'example.org', 2: 'Snapshot', 3: 'first', 4: 'other' },
    9: 'gold',
  };
  const status: Numbered = {
    1: 'Bound',
    2: 'ReadWriteOnce',
    3: quantities,
    4: { 1: 'Resizing', 2: 'True', 3: { 1: 1769851800 }, 4: { 1: 1769851800 }, 5: 'R', 6: 'm' },
    5: quantities,
    7: { 1: 'storage', 2: 'NodeResizePending' },
    8: 'silver',
    9: { 1: 'gold', 2: 'Pending' },
  };
  expect(decoded('', 'v1', 'PersistentVolumeClaim', { 1: metadata, 2: spec, 3: status })).toEqual({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'one' },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { limits: { storage: '1Gi' }, requests: { storage: '1Gi' } },
      volumeName: 'volume',
      selector: { matchLabels: { tier: 'fast' } },
      storageClassName: 'slow',
      volumeMode: 'Block',
      dataSource: { apiGroup: 'example.org', kind: 'Snapshot', name: 'first' },
      dataSourceRef: { apiGroup: 'example.org', kind: 'Snapshot', name: 'first', namespace: 'other' },
      volumeAttributesClassName: 'gold',
    },
    status: {
      phase: 'Bound',
      accessModes: ['ReadWriteOnce'],
      capacity: { storage: '1Gi' },
      conditions: [
        {
          type: 'Resizing',
          status: 'True',
          lastProbeTime: '2026-01-31T09:30:00Z',
          lastTransitionTime: '2026-01-31T09:30:00Z',
          reason: 'R',
          message: 'm',
        },
      ],
      allocatedResources: { storage: '1Gi' },
      allocatedResourceStatuses: { storage: 'NodeResizePending' },
      currentVolumeAttributesClassName: 'silver',
      modifyVolumeStatus: { targetVolumeAttributesClassName: 'gold', status: 'Pending' },
    },
  });
});

test('a StorageClass in protobuf keeps its parameters and topologies', () => {
  const values: Numbered = {
    1: metadata,
    2: 'example.org/disk',
    3: [
      { 1: 'type', 2: 'ssd' },
      { 1: 'zone', 2: '' },
    ],
    4: 'Delete',
    5: ['noatime', 'ro'],
    6: false,
    7: 'Immediate',
    8: { 1: { 1: 'zone', 2: ['a', 'b'] } },
  };
  expect(decoded('storage.k8s.io', 'v1', 'StorageClass', values)).toEqual({
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'one' },
    provisioner: 'example.org/disk',
    parameters: { type: 'ssd', zone: '' },
    reclaimPolicy: 'Delete',
    mountOptions: ['noatime', 'ro'],
    allowVolumeExpansion: false,
    volumeBindingMode: 'Immediate',
    allowedTopologies: [{ matchLabelExpressions: [{ key: 'zone', values: ['a', 'b'] }] }],
  });
});

test('a RuntimeClass in protobuf keeps its overhead and scheduling', () => {
  const values: Numbered = {
    1: metadata,
    2: 'runc',
    3: { 1: { 1: 'cpu', 2: { 1: '250m' } } },
    4: { 1: { 1: 'disk', 2: 'ssd' }, 2: { 1: 'key', 2: 'Exists', 4: 'NoExecute', 5: 0 } },
  };
  expect(decoded('node.k8s.io', 'v1', 'RuntimeClass', values)).toEqual({
    apiVersion: 'node.k8s.io/v1',
    kind: 'RuntimeClass',
    metadata: { name: 'one' },
    handler: 'runc',
    overhead: { podFixed: { cpu: '250m' } },
    scheduling: {
      nodeSelector: { disk: 'ssd' },
      tolerations: [{ key: 'key', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 0 }],
    },
  });
});

test('a PodTemplate in protobuf keeps its template', () => {
  const template: Numbered = { 1: { 11: { 1: 'app', 2: 'web' } }, 2: { 2: { 1: 'web', 2: 'nginx' }, 3: 'Never' } };
  expect(decoded('', 'v1', 'PodTemplate', { 1: metadata, 2: template })).toEqual({
    apiVersion: 'v1',
    kind: 'PodTemplate',
    metadata: { name: 'one' },
    template: {
      metadata: { labels: { app: 'web' } },
      spec: { containers: [{ name: 'web', image: 'nginx' }], restartPolicy: 'Never' },
    },
  });
});

test('an Eviction in protobuf keeps its delete options', () => {
  const options: Numbered = { 1: 0, 2: { 1: 'u', 2: '7' }, 4: 'Foreground', 5: 'All' };
  expect(decoded('policy', 'v1', 'Eviction', { 1: { 1: 'one', 3: 'default' }, 2: options })).toEqual({
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name: 'one', namespace: 'default' },
    deleteOptions: {
      gracePeriodSeconds: 0,
      preconditions: { uid: 'u', resourceVersion: '7' },
      propagationPolicy: 'Foreground',
      dryRun: ['All'],
    },
  });
});

test('values with a JSON form of their own are decoded: lists that are messages, durations and raw JSON', () => {
  const review: Numbered = { 1: metadata, 2: { 3: 'user', 5: { 1: 'scopes', 2: { 1: ['a', 'b'] } } } };
  expect(decoded('authorization.k8s.io', 'v1', 'SubjectAccessReview', review)).toMatchObject({
    spec: { user: 'user', extra: { scopes: ['a', 'b'] } },
  });
  expect(decoded('metrics.k8s.io', 'v1beta1', 'NodeMetrics', { 3: { 1: 15_000_000_000 } })).toMatchObject({
    window: '15s',
  });
  expect(decoded('apps', 'v1', 'ControllerRevision', { 2: { 1: '{"a":[1]}' }, 3: 2 })).toMatchObject({
    data: { a: [1] },
    revision: 2,
  });
});
