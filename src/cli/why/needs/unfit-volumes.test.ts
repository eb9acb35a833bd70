import { expect, test } from 'vitest';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '../../../api/generated/types.ts';
import { type Case, condition, explains, node, time } from '../explain-fixtures.ts';
import type { UnboundClaim } from '../subject.ts';
import { misfit } from './unfit-volumes.ts';

type VolumeSpec = NonNullable<PersistentVolume['spec']>;
const claim: PersistentVolumeClaim = {
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'data', namespace: 'n', uid: 'u' },
  spec: {
    accessModes: ['ReadWriteOnce'],
    storageClassName: 'handmade',
    resources: { requests: { storage: '3Gi' } },
  },
};
const volume = (name: string, spec: VolumeSpec = {}, more: Partial<PersistentVolume> = {}): PersistentVolume => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name },
  spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'handmade', capacity: { storage: '4Gi' }, ...spec },
  status: { phase: 'Available' },
  ...more,
});
const on = (name: string): VolumeSpec => ({
  nodeAffinity: {
    required: { nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: [name] }] }] },
  },
});
const held = { claimRef: { namespace: 'n', name: 'other', uid: 'o' } };
const SMALL = { capacity: { storage: '1Gi' } };

const selective = { ...claim, spec: { ...claim.spec, selector: { matchLabels: { tier: 'fast' } } } };

test.each<[string, PersistentVolume, string | undefined, PersistentVolumeClaim?]>([
  ['that fits', volume('v'), undefined],
  ['that is too small', volume('v', SMALL), 'has only 1Gi of the requested 3Gi'],
  ['that another claim uses', volume('v', held, { status: { phase: 'Bound' } }), 'is bound to the claim n/other'],
  ['that is kept for another claim', volume('v', held), 'is reserved for the claim n/other'],
  ['that is kept for the claim', volume('v', { ...SMALL, claimRef: { namespace: 'n', name: 'data' } }), undefined],
  [
    'that is kept for an earlier claim of the same name',
    volume('v', { claimRef: { namespace: 'n', name: 'data', uid: 'former' } }),
    'is reserved for an earlier claim n/data',
  ],
  ['that is not available yet', volume('v', {}, { status: { phase: 'Pending' } }), 'has the phase Pending'],
  ['without a status', volume('v', {}, { status: undefined }), 'has the phase Pending'],
  [
    'that a deleted claim used',
    volume('v', { claimRef: { namespace: 'n', name: 'data', uid: 'former' } }, { status: { phase: 'Released' } }),
    'is Released, because the claim n/data was deleted',
  ],
  ['whose files could not be deleted', volume('v', held, { status: { phase: 'Failed' } }), 'has the phase Failed'],
  ['that is a device', volume('v', { volumeMode: 'Block' }), 'has the volumeMode Block'],
  [
    'with another access mode',
    volume('v', { accessModes: ['ReadOnlyMany'] }),
    'does not have the access mode ReadWriteOnce',
  ],
  ['without the labels of the selector', volume('v'), "does not have the labels of the claim's selector", selective],
  [
    'with the labels of the selector',
    volume('v', {}, { metadata: { name: 'v', labels: { tier: 'fast' } } }),
    undefined,
    selective,
  ],
  [
    'that is being deleted',
    volume('v', {}, { metadata: { name: 'v', deletionTimestamp: time(3) } }),
    'is being deleted',
  ],
  ['on another node', volume('v', on('far')), 'is on another node'],
  ['on the node', volume('v', on('node')), undefined],
])('a volume %s is described', (_, given, phrase, of = claim) => {
  expect(misfit(given, of, [node({})])).toBe(phrase);
});

test('the node does not matter if the claim is bound without regard to nodes', () => {
  expect(misfit(volume('v', on('far')), claim)).toBeUndefined();
});

const CREATE = 'create a PersistentVolume of this class that fits the claim, or the StorageClass';
const unscheduled = (message: string): Case['status'] => ({
  conditions: [condition('PodScheduled', 'False', 'Unschedulable', message)],
});

function of(volumes: PersistentVolume[], why: string, advice: RegExp, more: Partial<UnboundClaim> = {}): Case {
  const message = 'storageclass.storage.k8s.io "handmade" not found';
  const event = { metadata: { name: 'e' }, involvedObject: {}, reason: 'ProvisioningFailed', message };
  return {
    spec: { nodeName: '', volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }] },
    status: unscheduled('0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.'),
    unboundClaims: [{ claim, events: [event as UnboundClaim['events'][number]], volumes, ...more }],
    sentence: `p is not scheduled: its PersistentVolumeClaim data is not bound, because ${why}.`,
    advice,
  };
}

const MANUAL: StorageClass = {
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name: 'handmade' },
  provisioner: 'kubernetes.io/no-provisioner',
  volumeBindingMode: 'WaitForFirstConsumer',
};
const named = { ...claim, spec: { ...claim.spec, volumeName: 'v' } };

explains({
  'a claim whose class is only a name, and whose volumes do not fit': of(
    [
      volume('taken', held, { status: { phase: 'Bound' } }),
      volume('small', SMALL),
      volume('x', { storageClassName: 'y' }),
    ],
    'no PersistentVolume of its class handmade fits it: small has only 1Gi of the requested 3Gi and taken is bound to the claim n/other',
    new RegExp(`^${CREATE}: see what it requests: kubectl describe pvc data -n n$`),
  ),
  'a claim with many volumes that do not fit': of(
    ['a', 'b', 'c', 'd', 'e'].map((name) => volume(name, SMALL)),
    `no PersistentVolume of its class handmade fits it: ${['a', 'b', 'c'].map((name) => `${name} has only 1Gi of the requested 3Gi`).join(', ')} and 2 others do not fit`,
    /^create /,
  ),
  'a claim whose class is only a name, and whose volume has been released': of(
    [volume('v', held, { status: { phase: 'Released' } })],
    'no PersistentVolume of its class handmade fits it: v is Released, because the claim n/other was deleted',
    new RegExp(
      `^${CREATE}, or remove the spec.claimRef of one that is Released, to use it with the files that it has: see`,
    ),
  ),
  'a claim whose class exists neither as an object nor at a volume': of(
    [volume('x', { storageClassName: 'y' })],
    'its StorageClass handmade does not exist, and no PersistentVolume has this class',
    /^create the StorageClass or, by hand, a PersistentVolume of this class, or delete the claim /,
  ),
  'a claim that waits for the scheduler, whose volume is on another node': {
    ...of(
      [volume('v', on('far'))],
      'no PersistentVolume fits it, and its StorageClass handmade creates none: v is on another node',
      /^create a PersistentVolume that fits the claim: see /,
      { events: [], storageClass: MANUAL },
    ),
    status: unscheduled("0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind."),
    nodes: [node({})],
  },
  'a claim that names the volume of an earlier claim': of(
    [volume('v', { claimRef: { namespace: 'n', name: 'data', uid: 'former' } })],
    'the PersistentVolume v that its spec.volumeName names is reserved for an earlier claim n/data',
    /^change the volume, or .*kubectl describe pv v$/,
    { claim: named, events: [] },
  ),
  'a claim that names the volume of another claim': of(
    [volume('v', held, { status: { phase: 'Bound' } })],
    'the PersistentVolume v that its spec.volumeName names is bound to the claim n/other',
    /kubectl get pv v$/,
    { claim: named, events: [] },
  ),
  'a claim that names a volume which does not exist among those that do': of(
    [volume('w')],
    'the PersistentVolume v that its spec.volumeName names does not exist',
    /kubectl get pv v$/,
    { claim: named, events: [] },
  ),
});

const CONFLICT = '0/1 nodes are available: 1 node(s) had volume node affinity conflict.';
const distant = (boundVolumes: Case['boundVolumes'], advice: RegExp, nodes?: Case['nodes']): Case => ({
  spec: { nodeName: '', volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }] },
  status: unscheduled(CONFLICT),
  boundVolumes,
  nodes,
  sentence: `p is not scheduled: ${CONFLICT}`,
  advice,
});

explains({
  'a volume on another node': distant(
    [volume('near', on('node')), volume('far', on('other'))],
    /^the PersistentVolume far is on another node: see which one \(Node Affinity\): kubectl describe pv far$/,
    [node({})],
  ),
  'volumes on other nodes, of a user who may not read Nodes': distant(
    [volume('a', on('x')), volume('b', on('y')), volume('c')],
    /^the PersistentVolumes a and b are on other nodes: see which ones \(Node Affinity\): kubectl describe pv a b$/,
  ),
  'a volume on another node that the user may not read': distant(
    undefined,
    /^the volume of a claim is on another node: see which one: kubectl describe pvc data -n n$/,
    [node({})],
  ),
});
