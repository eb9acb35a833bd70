import { describe, expect, it } from 'vitest';
import { containerOf, defaulted, nodeOf, podOf } from '../api/core/v1/pod/pod-fixtures.ts';
import type { PersistentVolume, PersistentVolumeClaim, Pod, StorageClass } from '../api/generated/types.ts';
import { podsByNode } from './node-pods.ts';
import { schedule } from './schedule.ts';
import { BIND_COMPLETED, unboundClaims, type VolumeFacts } from './volume-claims.ts';
import { volumeIndex } from './volume-search.ts';

const claimOf = (spec: PersistentVolumeClaim['spec'] = {}, rest: Partial<PersistentVolumeClaim> = {}) =>
  ({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'c', namespace: 'default', uid: 'c-1' },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
    ...rest,
  }) satisfies PersistentVolumeClaim;
const boundTo = (volumeName: string, spec: PersistentVolumeClaim['spec'] = {}): PersistentVolumeClaim => {
  const claim = claimOf({ volumeName, ...spec });
  return { ...claim, metadata: { ...claim.metadata, annotations: { [BIND_COMPLETED]: 'yes' } } };
};
const volumeOf = (name: string, storage: string, spec: PersistentVolume['spec'] = {}): PersistentVolume => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name, labels: { name } },
  spec: { capacity: { storage }, accessModes: ['ReadWriteOnce', 'ReadOnlyMany'], ...spec },
  status: { phase: 'Available' },
});
const on = (value: string): PersistentVolume['spec'] => ({
  nodeAffinity: {
    required: {
      nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: [value] }] }],
    },
  },
});

describe('search for the volume of a claim', () => {
  it.each<[string, PersistentVolumeClaim, PersistentVolume[], string | undefined]>([
    [
      'is the smallest that is large enough',
      claimOf(),
      [volumeOf('l', '3Gi'), volumeOf('m', '2Gi'), volumeOf('s', '1Mi')],
      'm',
    ],
    [
      'must have all access modes of the claim',
      claimOf({ accessModes: ['ReadWriteMany'] }),
      [volumeOf('a', '1Gi')],
      undefined,
    ],
    ['must have the class of the claim', claimOf({ storageClassName: 'x' }), [volumeOf('a', '1Gi')], undefined],
    [
      'must match the selector of the claim',
      claimOf({ selector: { matchLabels: { name: 'b' } } }),
      [volumeOf('a', '1Gi'), volumeOf('b', '2Gi')],
      'b',
    ],
    [
      'is the one that is reserved for it, whatever its size',
      claimOf(),
      [volumeOf('a', '1Gi'), volumeOf('kept', '1Mi', { claimRef: { namespace: 'default', name: 'c' } })],
      'kept',
    ],
    [
      'must not be reserved for another claim, or for an earlier one of the same name',
      claimOf(),
      [
        volumeOf('a', '1Gi', { claimRef: { namespace: 'default', name: 'other' } }),
        volumeOf('b', '1Gi', { claimRef: { namespace: 'default', name: 'c', uid: 'c-0' } }),
      ],
      undefined,
    ],
    ['must not be released', claimOf(), [{ ...volumeOf('a', '1Gi'), status: { phase: 'Released' } }], undefined],
  ])('the volume for a claim %s', (_what, claim, volumes, expected) => {
    expect(volumeIndex(volumes).on(undefined)(claim)?.metadata.name).toBe(expected);
  });
  it('the volume for a claim must be accessible on the node', () => {
    const volumes = [volumeOf('a', '1Gi', on('elsewhere')), volumeOf('b', '2Gi', on('n'))];
    expect(volumeIndex(volumes).on(nodeOf('n'))(claimOf())?.metadata.name).toBe('b');
  });
});

describe('index of volumes', () => {
  it('the index of volumes reflects changed and removed volumes', () => {
    const index = volumeIndex([volumeOf('a', '3Gi'), volumeOf('b', '2Gi')]);
    const best = () => index.on(undefined)(claimOf())?.metadata.name;
    expect(best()).toBe('b');
    const kept = { ...volumeOf('b', '2Gi', { claimRef: { namespace: 'default', name: 'other' } }) };
    index.remove(volumeOf('b', '2Gi'));
    index.put(kept);
    expect(best()).toBe('a');
    index.remove(kept);
    index.put(volumeOf('b', '1Gi'));
    expect(best()).toBe('b');
    index.remove(volumeOf('b', '1Gi'));
    index.remove(volumeOf('a', '3Gi'));
    expect(best()).toBeUndefined();
  });
  it('the index of volumes reflects changed volumes in searches for one node', () => {
    const index = volumeIndex([volumeOf('a', '3Gi', on('n')), volumeOf('b', '1Gi', on('other'))]);
    const [n, other] = [nodeOf('n'), nodeOf('other')];
    const best = (node = n) => index.on(node)(claimOf())?.metadata.name;
    expect([best(), best(other), best()]).toEqual(['a', 'b', 'a']);
    index.put(volumeOf('c', '2Gi', on('n')));
    index.put(volumeOf('d', '1Gi', on('other')));
    expect(best()).toBe('c');
    index.remove(volumeOf('c', '2Gi', on('n')));
    expect(best()).toBe('a');
    index.remove(volumeOf('a', '3Gi', on('n')));
    expect([best(), best(other)]).toEqual([undefined, 'b']);
  });
});

const pod = (): Pod =>
  defaulted(
    podOf({ containers: [containerOf('app')], volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }] }),
  );
const facts = (
  claim: PersistentVolumeClaim | undefined,
  volumes: PersistentVolume[] = [],
  storageClass?: Partial<StorageClass>,
): VolumeFacts => ({
  claim: () => claim,
  volume: (name) => volumes.find(({ metadata }) => metadata.name === name),
  search: () => volumeIndex(volumes),
  storageClass: () => storageClass as StorageClass | undefined,
});
const unavailable = (why: string) => ({ message: `0/1 nodes are available: ${why}.` });
const waiting = { volumeBindingMode: 'WaitForFirstConsumer', provisioner: 'lifepod.io/local-path' };

describe('scheduling of a Pod with a claim', () => {
  it.each<[string, VolumeFacts, object]>([
    ['that does not exist', facts(undefined), unavailable('persistentvolumeclaim "c" not found')],
    [
      'that is being deleted',
      facts(claimOf({}, { metadata: { name: 'c', namespace: 'default', deletionTimestamp: '2026-01-31T00:00:00Z' } })),
      unavailable('persistentvolumeclaim "c" is being deleted'),
    ],
    [
      'that has lost its volume',
      facts(claimOf({ volumeName: 'v' }, { status: { phase: 'Lost' } })),
      unavailable('persistentvolumeclaim "c" bound to non-existent persistentvolume "v"'),
    ],
    ['that is not bound', facts(claimOf()), unavailable('pod has unbound immediate PersistentVolumeClaims')],
    ['that waits for the first consumer', facts(claimOf(), [], waiting), { node: 'n' }],
    [
      'that waits for the first consumer, without a provisioner',
      facts(claimOf(), [], { ...waiting, provisioner: 'kubernetes.io/no-provisioner' }),
      unavailable("1 node(s) didn't find available persistent volumes to bind"),
    ],
    ['that is bound', facts(boundTo('v'), [volumeOf('v', '1Gi', on('n'))]), { node: 'n' }],
    [
      'that is bound to a volume on another node',
      facts(boundTo('v'), [volumeOf('v', '1Gi', on('m'))]),
      unavailable('1 node(s) had volume node affinity conflict'),
    ],
    [
      'that is bound to a deleted volume',
      facts(boundTo('v')),
      unavailable('1 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)'),
    ],
  ])('scheduling of a Pod with a claim %s', (_what, volumes, expected) => {
    expect(schedule(pod(), [nodeOf('n')], podsByNode([]), { volumes })).toEqual(expected);
  });

  it('a Pod with a ReadWriteOncePod claim waits for the other Pod that uses it', () => {
    const volumes = facts(boundTo('v', { accessModes: ['ReadWriteOncePod'] }), [volumeOf('v', '1Gi')]);
    const other = { ...pod(), spec: { ...pod().spec, nodeName: 'n' } } as Pod;
    expect(schedule(pod(), [nodeOf('n')], podsByNode([other]), { volumes })).toEqual(
      unavailable('1 node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode'),
    );
    const over = { ...other, status: { phase: 'Succeeded' } } as Pod;
    expect(schedule(pod(), [nodeOf('n')], podsByNode([over]), { volumes })).toEqual({ node: 'n' });
  });

  it('a claim counts as bound only once its phase is Bound', () => {
    const claim = boundTo('v');
    expect(unboundClaims(pod(), facts(claimOf()))).toHaveLength(1);
    expect(unboundClaims(pod(), facts({ ...claim, status: { phase: 'Pending' } }))).toHaveLength(1);
    expect(unboundClaims(pod(), facts({ ...claim, status: { phase: 'Bound' } }))).toEqual([]);
  });
});
