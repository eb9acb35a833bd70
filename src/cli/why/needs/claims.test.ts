import type { CoreV1Event, Pod, StorageClass } from '../../../api/generated/types.ts';
import { SELECTED_NODE } from '../../../scheduling/volume-claims.ts';
import { type Case, condition, explains, time } from '../explain-fixtures.ts';
import type { UnboundClaim } from '../subject.ts';

interface Given {
  event?: [reason: string, message: string];
  storageClassName?: string;
  volumeName?: string;
  storageClass?: Partial<StorageClass>;
  selected?: true;
}

const named = (kind: string, name: string) => ({ apiVersion: 'v1', kind, metadata: { name, namespace: 'n' } });
const spec = (...claims: string[]): Partial<NonNullable<Pod['spec']>> => ({
  nodeName: '',
  volumes: claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
});

function unbound(name: string, { event, storageClass, selected, ...claimSpec }: Given = {}): UnboundClaim {
  const claim = { ...named('PersistentVolumeClaim', name), spec: claimSpec };
  const annotations: Record<string, string> = selected === true ? { [SELECTED_NODE]: 'node' } : {};
  return {
    claim: { ...claim, metadata: { ...claim.metadata, annotations } },
    events:
      event === undefined
        ? []
        : [
            {
              ...named('Event', 'e'),
              involvedObject: {},
              reason: event[0],
              message: event[1],
              lastTimestamp: time(3),
            } as CoreV1Event,
          ],
    storageClass: storageClass && {
      ...named('StorageClass', 'c'),
      provisioner: 'lifepod.io/local-path',
      ...storageClass,
    },
  };
}

const UNBOUND = '0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.';
const NO_VOLUME = "0/1 nodes are available: 1 node(s) didn't find available persistent volumes to bind.";
const unscheduled = (message: string) => ({
  conditions: [condition('PodScheduled', 'False', 'Unschedulable', message)],
});
const WAITS: Given['event'] = ['WaitForFirstConsumer', 'waiting for first consumer to be created before binding'];
const LATE = { volumeBindingMode: 'WaitForFirstConsumer' };
const MANUAL = { ...LATE, provisioner: 'kubernetes.io/no-provisioner' };

const of = (given: Given, why: string, advice: RegExp): Case => ({
  spec: spec('data'),
  status: unscheduled(UNBOUND),
  unboundClaims: [unbound('data', given)],
  sentence: `p is not scheduled: its PersistentVolumeClaim data is not bound${why}.`,
  advice,
});

explains({
  'a claim whose StorageClass does not exist': {
    ...of(
      { storageClassName: 'x', event: ['ProvisioningFailed', 'storageclass.storage.k8s.io "x" not found'] },
      ', because its StorageClass x does not exist',
      /^create the StorageClass or, by hand, a PersistentVolume of this class, or delete the claim and create it again with the storageClassName of one that exists; see which ones exist: kubectl get storageclass$/,
    ),
    evidence: [
      'PersistentVolumeClaim data: Event ProvisioningFailed, 3.00s ago: storageclass.storage.k8s.io "x" not found',
      `condition PodScheduled is False (Unschedulable): ${UNBOUND}`,
    ],
  },
  'a claim without a StorageClass that no volume fits': of(
    { event: ['FailedBinding', 'no persistent volumes available for this claim and no storage class is set'] },
    ', because no PersistentVolume fits it, and it has no storageClassName',
    /^create a PersistentVolume .*: kubectl describe pvc data -n n$/,
  ),
  'a claim whose StorageClass creates no volumes': of(
    { event: ['ProvisioningFailed', 'no volume plugin matched name: kubernetes.io/no-provisioner'] },
    ', because no PersistentVolume fits it, and its StorageClass creates none',
    /^create a PersistentVolume /,
  ),
  'a claim that names a volume that does not fit': of(
    { volumeName: 'v', event: ['VolumeMismatch', 'Cannot bind to requested volume "v": requested PV is too small'] },
    ', because the PersistentVolume v that its spec.volumeName names does not fit: requested PV is too small',
    /^change the volume, or delete the claim and create it again with a spec that fits: see what it requests: /,
  ),
  'a claim that names a volume that does not exist': of(
    { volumeName: 'v' },
    ', because the PersistentVolume v that its spec.volumeName names does not exist, or is not free',
    /: kubectl get pv v$/,
  ),
  'a claim that waits for an external provisioner': of(
    {
      event: [
        'ExternalProvisioning',
        "Waiting for a volume to be created either by the external provisioner 'x.example/y' or manually by the system administrator.",
      ],
    },
    ', because the provisioner x.example/y of its StorageClass has not created a volume',
    /^make sure that this provisioner runs/,
  ),
  'a claim without Events': of({}, '', /^see why the claim is not bound: kubectl describe pvc data -n n$/),
  'the claim that is not bound, not the one that waits for the scheduler': {
    spec: spec('late', 'data'),
    status: unscheduled(UNBOUND),
    unboundClaims: [
      unbound('late', { storageClass: LATE, event: WAITS }),
      unbound('other', { event: WAITS }),
      unbound('data'),
    ],
    sentence: 'p is not scheduled: its PersistentVolumeClaim data is not bound.',
  },
  'a claim that waits for the scheduler, which finds no volume': {
    spec: spec('data', 'late'),
    status: unscheduled(NO_VOLUME),
    unboundClaims: [
      unbound('data', { storageClassName: 'manual', storageClass: MANUAL, event: WAITS }),
      unbound('late', { storageClass: LATE, event: WAITS }),
    ],
    sentence:
      'p is not scheduled: its PersistentVolumeClaim data is not bound, because no PersistentVolume fits it, and its StorageClass manual creates none.',
  },
  'a claim without a volume, beside one whose class the user may not read': {
    spec: spec('data', 'late'),
    status: unscheduled(NO_VOLUME),
    unboundClaims: [
      unbound('data', { storageClassName: 'manual', storageClass: MANUAL, event: WAITS }),
      unbound('late', { storageClassName: 'fast', event: WAITS }),
    ],
    sentence: /PersistentVolumeClaim data is not bound, because (?!.*late)/,
  },
  'a claim without a volume whose class the user may not read': {
    spec: spec('late'),
    status: unscheduled(NO_VOLUME),
    unboundClaims: [unbound('late', { storageClassName: 'fast', event: WAITS })],
    sentence: 'p is not scheduled: its PersistentVolumeClaim late is not bound, because no PersistentVolume fits it.',
  },
  'a claim for which no volume can be created after the scheduler has chosen a node': {
    spec: spec('data'),
    unboundClaims: [
      unbound('data', {
        selected: true,
        storageClass: LATE,
        event: [
          'ProvisioningFailed',
          'failed to provision volume with StorageClass "local-path": block volumes are not supported',
        ],
      }),
    ],
    sentence:
      'p is not scheduled yet: its PersistentVolumeClaim data is not bound, because no volume could be created for it: block volumes are not supported.',
    advice:
      /^remove the cause of the error, or delete the claim and create it again with a spec that is supported: see /,
  },
  'claims that the user may not read': {
    spec: spec('a', 'b'),
    status: unscheduled(UNBOUND),
    sentence: `p is not scheduled: ${UNBOUND}`,
    advice: /^see why a claim is not bound: kubectl describe pvc a b -n n$/,
  },
});

const ephemeral: Partial<NonNullable<Pod['spec']>> = {
  nodeName: '',
  volumes: [{ name: 'data', ephemeral: { volumeClaimTemplate: { spec: {} } } }],
};
const member: Partial<NonNullable<Pod['spec']>> = {
  nodeName: '',
  volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data-p' } }],
};
const ownedBy = (kind: string, name: string): Case['metadata'] => ({
  ownerReferences: [{ apiVersion: 'apps/v1', kind, name, uid: 'u', controller: true }],
});
/** `p-data` is the claim of an ephemeral volume, `data-p` of a member of a StatefulSet. */
const classless = (name: string, remedy: string, given: Partial<Case>): Case => ({
  status: unscheduled(UNBOUND),
  unboundClaims: [
    unbound(name, {
      storageClassName: 'x',
      event: ['ProvisioningFailed', 'storageclass.storage.k8s.io "x" not found'],
    }),
  ],
  sentence: `p is not scheduled: its PersistentVolumeClaim ${name} is not bound, because its StorageClass x does not exist.`,
  advice: new RegExp(
    `^create the StorageClass or, by hand, a PersistentVolume of this class, or ${remedy}; see which ones exist: kubectl get storageclass$`,
  ),
  ...given,
});
const waitsWith = (text: string, advice: RegExp, given: Partial<Case>): Case => ({
  status: unscheduled(`0/1 nodes are available: ${text}.`),
  sentence: `p is not scheduled: 0/1 nodes are available: ${text}.`,
  advice,
  ...given,
});
const FOREIGN = 'PVC n/p-data was not created for pod n/p (pod is not owner)';
const AWAITED = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-data"';

explains({
  'a StorageClass that the claim of a StatefulSet lacks': classless(
    'data-p',
    'delete the StatefulSet db and then the claim, and create the StatefulSet again with the storageClassName of one that exists in its volumeClaimTemplates',
    { spec: member, metadata: ownedBy('StatefulSet', 'db') },
  ),
  'a StorageClass that an existing claim of a Pod of a StatefulSet lacks': classless(
    'shared',
    'delete the claim and create it again with the storageClassName of one that exists',
    { spec: spec('shared'), metadata: ownedBy('StatefulSet', 'db') },
  ),
  'a StorageClass that an ephemeral volume lacks': classless(
    'p-data',
    'recreate the Pod with the storageClassName of one that exists in its ephemeral volume data',
    { spec: ephemeral },
  ),
  'a StorageClass that an ephemeral volume of a Job lacks': classless(
    'p-data',
    'recreate the Job j with the storageClassName of one that exists in its ephemeral volume data',
    { spec: ephemeral, metadata: ownedBy('Job', 'j') },
  ),
  'a StorageClass that an ephemeral volume of a workload lacks': classless(
    'p-data',
    'apply deployment/r with the storageClassName of one that exists in its ephemeral volume data',
    { spec: ephemeral, metadata: { ...ownedBy('ReplicaSet', 'r-5f'), labels: { 'pod-template-hash': '5f' } } },
  ),
  'an ephemeral volume whose claim has another owner': waitsWith(
    FOREIGN,
    /^if nothing needs the claim p-data, delete it: .*: kubectl delete pvc p-data -n n\nor keep the claim, and recreate the Pod with another name for its ephemeral volume data$/,
    { spec: ephemeral },
  ),
  'an ephemeral volume of a workload whose claim has another owner': waitsWith(
    FOREIGN,
    /\nor keep the claim, and apply statefulset\/db with another name for its ephemeral volume data, and delete the Pod/,
    { spec: ephemeral, metadata: ownedBy('StatefulSet', 'db') },
  ),
  'an ephemeral volume whose claim is being created': waitsWith(
    AWAITED,
    /^wait a moment: the claim is being created$/,
    {
      spec: ephemeral,
      events: [['FailedBinding', `ephemeral volume data: ${FOREIGN}`]],
    },
  ),
  'an ephemeral volume whose claim cannot be created': waitsWith(
    AWAITED,
    /^remove what prevents the creation of the claim, which is retried automatically: exceeded quota: q$/,
    { spec: ephemeral, events: [['FailedBinding', 'ephemeral volume data: create PVC p-data: exceeded quota: q']] },
  ),
  'an ephemeral volume whose claim is being deleted': waitsWith(
    'persistentvolumeclaim "p-data" is being deleted',
    /after this Pod has been deleted, a controller creates the claim again: kubectl describe pvc p-data -n n$/,
    { spec: ephemeral },
  ),
  'a claim of a StatefulSet whose volume has been deleted': waitsWith(
    'persistentvolumeclaim "data-p" bound to non-existent persistentvolume "v"',
    /^its volume has been deleted: delete the claim, which is then created again: kubectl describe pvc data-p -n n$/,
    { spec: member, metadata: ownedBy('StatefulSet', 'db') },
  ),
  'a claim of a StatefulSet that does not exist': waitsWith(
    'persistentvolumeclaim "data-p" not found',
    /^the StatefulSet db creates the claim data-p: see in its Events why it does not: kubectl describe statefulset db -n n$/,
    { spec: member, metadata: ownedBy('StatefulSet', 'db') },
  ),
});

const unmounted = (problem: string, clause: string, advice: RegExp, given: Partial<Case> = {}): Case => {
  const claim = given.spec === undefined ? 'data' : 'p-data';
  return {
    spec: { ...spec('data'), nodeName: 'node' },
    status: { phase: 'Pending' },
    events: [
      ['FailedMount', `MountVolume.SetUp failed for volume "data" : error processing PVC n/${claim}: ${problem}`],
    ],
    sentence: `p waits for its volumes: the volume data needs the PersistentVolumeClaim ${claim}, which ${clause}.`,
    advice,
    ...given,
  };
};
const placed = { spec: { ...ephemeral, nodeName: 'node' } };
const absent = (name: string) => `failed to fetch PVC from API server: persistentvolumeclaims "${name}" not found`;

explains({
  'a claim that is not bound, of a Pod with a nodeName': unmounted(
    'PVC is not bound',
    'is not bound',
    /^see why the claim is not bound: kubectl describe pvc data -n n\nif it waits for its first consumer, recreate the Pod with a nodeSelector /,
  ),
  'a claim that is being deleted, of a Pod with a nodeName': unmounted(
    'PVC is being deleted',
    'is being deleted',
    /after this Pod has been deleted, create the claim again: kubectl describe pvc data -n n$/,
  ),
  'a claim that does not exist, of a Pod with a nodeName': unmounted(
    absent('data'),
    'does not exist',
    /^create the PersistentVolumeClaim data, .*: kubectl get pvc -n n$/,
  ),
  'an ephemeral volume whose claim has another owner, of a Pod with a nodeName': unmounted(
    'PVC n/p-data was not created for the Pod (pod is not owner)',
    'was not created for the Pod',
    /^if nothing needs the claim p-data, delete it: .*: kubectl delete pvc p-data -n n\nor keep the claim, /,
    placed,
  ),
  'an ephemeral volume whose claim is being deleted, of a Pod with a nodeName': unmounted(
    'PVC is being deleted',
    'is being deleted',
    /after this Pod has been deleted, a controller creates the claim again: kubectl describe pvc p-data -n n$/,
    placed,
  ),
  'an ephemeral volume whose claim does not exist, of a Pod with a nodeName': unmounted(
    absent('p-data'),
    'does not exist',
    /^wait a moment: .*: kubectl describe pod p -n n$/,
    placed,
  ),
});
