import { beforeAll, describe, expect, test } from 'vitest';
import { MIRROR_ANNOTATION } from '../../../api/core/v1/pod/mirror.ts';
import type { Node, Pod, PodRecord } from '../../../api/generated/types.ts';
import { POD_RECORDS, recordName } from '../../../api/lifepod.io/v1/pod-record/index.ts';
import { CERTIFICATE_SIGNING_REQUESTS, LEASES, NODES, PERSISTENT_VOLUME_CLAIMS } from '../../../api/resources.ts';
import type { KubeObject } from '../../../machinery/meta.ts';
import { apiFor } from '../../../ports/api-for.ts';
import type { ResourceApi } from '../../../ports/backend.ts';
import { makeRequest } from '../../pki/request-fixture.ts';
import {
  asClient,
  failure,
  object,
  PODS,
  pod,
  SERVICE_ACCOUNTS,
  type Started,
  startRegistry,
} from '../../registry/testing.ts';

const nodeUser = (name: string) => ({ name: `system:node:${name}`, groups: ['system:nodes', 'system:authenticated'] });
const MERGE = 'application/merge-patch+json';
const owned = { namespace: 'default' };

let started: Started;
let n1: ResourceApi;
let [own, foreign]: Pod[] = [];
let node: Node;

beforeAll(async () => {
  started = await startRegistry({
    issueToken: async (_namespace, _account, options) =>
      ({ id: 'id', audiences: options?.audiences ?? [], expirationSeconds: 3600, status: { token: 't' } }) as never,
    authorizer: {
      authorize: async (asked) => ({
        allowed: asked.verb === 'request-serviceaccounts-token-audience' && JSON.stringify(asked).includes('"granted"'),
        reason: '',
      }),
      rulesFor: async () => ({ roles: [], errors: [] }),
    },
  });
  const { registry } = started;
  node = (await registry.create(NODES, undefined, object('Node', 'n1', {}, { labels: { old: '1' } }))) as Node;
  await registry.create(NODES, undefined, object('Node', 'n2'));
  const sources = [{ serviceAccountToken: { path: 'a' } }, { serviceAccountToken: { path: 'b', audience: 'vault' } }];
  const spec = { automountServiceAccountToken: false, volumes: [{ name: 'v', projected: { sources } }] };
  const create = (name: string, nodeName: string) =>
    registry.create(PODS, 'default', pod(name, { ...spec, nodeName }, owned)) as Promise<Pod>;
  [own, foreign] = [await create('own', 'n1'), await create('foreign', 'n2')];
  await registry.create(PERSISTENT_VOLUME_CLAIMS, 'default', claim());
  n1 = apiFor(started.backend, nodeUser('n1'));
});

const claim = (status?: object): KubeObject =>
  object(
    'PersistentVolumeClaim',
    'claim',
    {
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
      ...(status && { status }),
    },
    owned,
  );

const ownerOf = (more: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Node',
  name: 'n1',
  uid: node.metadata.uid,
  controller: true,
  ...more,
});
let serial = 0;
const mirror = (metadata: object = {}, spec: object = {}): Pod =>
  pod(
    `mirror-${++serial}`,
    { nodeName: 'n1', ...spec },
    { ...owned, annotations: { [MIRROR_ANNOTATION]: 'uid' }, ownerReferences: [ownerOf()], ...metadata },
  );
const createPod = (created: Pod) => n1.create(PODS, 'default', created);
const token = (bound: object | undefined, audiences: string[] = []) =>
  n1.create(
    SERVICE_ACCOUNTS,
    'default',
    {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      metadata: { name: '' },
      spec: { audiences, ...(bound && { boundObjectRef: { apiVersion: 'v1', kind: 'Pod', ...bound } }) },
    } as KubeObject,
    { name: 'default', subresource: 'token' },
  );
const boundTo = (to: Pod | undefined, more: object = {}) => ({
  name: to?.metadata.name,
  uid: to?.metadata.uid,
  ...more,
});
const evict = (name: string) =>
  n1.create(
    PODS,
    'default',
    { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace: 'default' } },
    {
      name,
      subresource: 'eviction',
      dryRun: true,
    },
  );
const label = (labels: object) => n1.patch(NODES, undefined, 'n1', MERGE, { metadata: { labels } });
const lease = (name: string, namespace = 'kube-node-lease'): KubeObject => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name, namespace },
});
const status = (name: string, change: object) =>
  n1.patch(PODS, 'default', name, MERGE, change, { subresource: 'status' });
const claimStatus = (change: object) =>
  n1.patch(PERSISTENT_VOLUME_CLAIMS, 'default', 'claim', MERGE, change, { subresource: 'status' });

const certificate = async (subject: string, spec: object = {}) =>
  n1.create(
    CERTIFICATE_SIGNING_REQUESTS,
    undefined,
    object('CertificateSigningRequest', `request-${++serial}`, {
      apiVersion: 'certificates.k8s.io/v1',
      spec: {
        request: (await makeRequest(subject)).request,
        signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
        usages: ['client auth'],
        ...spec,
      },
    }),
  );

test.each<[string, () => Promise<unknown>]>([
  ['ask for a certificate with its name', () => certificate('O=system:nodes, CN=system:node:n1')],
  ['ask another signer for any certificate', () => certificate('CN=a', { signerName: 'example.com/a' })],
  ['create a mirror Pod that it owns', () => createPod(mirror())],
  ['delete its Pod', () => n1.delete(PODS, 'default', 'own', { dryRun: true })],
  ['write the status of its Pod', () => status('own', { status: { message: 'm' } })],
  ['evict its Pod', () => evict('own')],
  ['request a token for its Pod', () => token(boundTo(own))],
  ['request a token for the audience of a volume', () => token(boundTo(own), ['vault'])],
  ['request a token for an audience that a role grants', () => token(boundTo(own), ['granted'])],
  ['set labels of its machine', () => label({ 'kubernetes.io/arch': 'x', 'topology.kubernetes.io/zone': 'z', a: 'b' })],
  ['set labels of the kubelet', () => label({ 'kubelet.kubernetes.io/a': 'x', 'sub.node.kubernetes.io/a': 'x' })],
  ['remove its labels', () => label({ old: null })],
  ['write its status', () => n1.patch(NODES, undefined, 'n1', MERGE, { status: {} }, { subresource: 'status' })],
  ['create its Lease', () => n1.create(LEASES, 'kube-node-lease', lease('n1'))],
  ['write the capacity of a claim', () => claimStatus({ status: { capacity: { storage: '1Gi' } } })],
])('a node may %s', async (_, act) => {
  await act();
});

const NODE = 'node "n1"';

describe('what a node may not write', () => {
  test.each<[string, () => Promise<unknown>, string]>([
    [
      'a Pod',
      () => createPod(mirror({ annotations: {} })),
      `pod does not have "${MIRROR_ANNOTATION}" annotation, ${NODE} can only create mirror pods`,
    ],
    [
      'a mirror Pod of another node',
      () => createPod(mirror({}, { nodeName: 'n2' })),
      `${NODE} can only create pods with spec.nodeName set to itself`,
    ],
    [
      'a mirror Pod without owner',
      () => createPod(mirror({ ownerReferences: [] })),
      `${NODE} can only create pods with an owner reference set to itself`,
    ],
    [
      'a mirror Pod with two owners',
      () => createPod(mirror({ ownerReferences: [ownerOf(), ownerOf({ uid: 'x' })] })),
      `${NODE} can only create pods with a single owner reference set to itself`,
    ],
    [
      'a mirror Pod of another owner',
      () => createPod(mirror({ ownerReferences: [ownerOf({ name: 'n2' })] })),
      `${NODE} can only create pods with an owner reference set to itself`,
    ],
    [
      'a mirror Pod without controller',
      () => createPod(mirror({ ownerReferences: [ownerOf({ controller: false })] })),
      `${NODE} can only create pods with a controller owner reference set to itself`,
    ],
    [
      'a mirror Pod that blocks the deletion of its owner',
      () => createPod(mirror({ ownerReferences: [ownerOf({ blockOwnerDeletion: true })] })),
      `${NODE} must not set blockOwnerDeletion on an owner reference`,
    ],
    [
      'a mirror Pod of a former Node',
      () => createPod(mirror({ ownerReferences: [ownerOf({ uid: 'x' })] })),
      'node n1 UID mismatch: expected x got ',
    ],
    [
      'a mirror Pod with a Secret',
      () => createPod(mirror({}, { imagePullSecrets: [{ name: 's' }] })),
      `${NODE} can not create pods that reference secrets`,
    ],
    [
      'the spec of its Pod',
      () => n1.patch(PODS, 'default', 'own', MERGE, { spec: { activeDeadlineSeconds: 1 } }),
      `unexpected operation "UPDATE", ${NODE} can only create and delete mirror pods`,
    ],
    [
      'the deletion of a Pod of another node',
      () => n1.delete(PODS, 'default', 'foreign'),
      `${NODE} can only delete pods with spec.nodeName set to itself`,
    ],
    [
      'the status of a Pod of another node',
      () => status('foreign', { status: { message: 'm' } }),
      `${NODE} can only update pod status for pods with spec.nodeName set to itself`,
    ],
    [
      'the ResourceClaims of its Pod',
      () => status('own', { status: { resourceClaimStatuses: [{ name: 'a' }] } }),
      `${NODE} cannot update resource claim statues`,
    ],
    [
      'the eviction of a Pod of another node',
      () => evict('foreign'),
      'node n1 can only evict pods with spec.nodeName set to itself',
    ],
    [
      'a Binding',
      () =>
        n1.create(PODS, 'default', object('Binding', 'own', { target: { kind: 'Node', name: 'n1' } }, owned), {
          name: 'own',
          subresource: 'binding',
        }),
      `unexpected pod subresource "binding", only 'status' and 'eviction' are allowed`,
    ],
    ['a token without a Pod', () => token(undefined), 'node requested token not bound to a pod'],
    ['a token for a Secret', () => token(boundTo(own, { kind: 'Secret' })), 'node requested token not bound to a pod'],
    [
      'a token for a Pod without its UID',
      () => token(boundTo(own, { uid: '' })),
      'node requested token with a pod binding without a uid',
    ],
    [
      'a token for a former Pod',
      () => token(boundTo(own, { uid: 'x' })),
      'the UID in the bound object reference (x) does not match the UID in record. The object might have been deleted and then recreated',
    ],
    [
      'a token for a Pod of another node',
      () => token(boundTo(foreign)),
      'node requested token bound to a pod scheduled on a different node',
    ],
    [
      'a token for several audiences',
      () => token(boundTo(own), ['', 'vault']),
      'node may only request 0 or 1 audiences',
    ],
    [
      'a token for another audience',
      () => token(boundTo(own), ['x']),
      'audience "x" not found in pod spec volume, system:node:n1 is not authorized to request tokens for this audience',
    ],
    [
      'another Node',
      () => n1.patch(NODES, undefined, 'n2', MERGE, { metadata: { labels: { a: 'b' } } }),
      `${NODE} is not allowed to modify node "n2"`,
    ],
    [
      'the status of another Node',
      () => n1.patch(NODES, undefined, 'n2', MERGE, { status: { phase: 'x' } }, { subresource: 'status' }),
      `${NODE} is not allowed to modify node "n2"`,
    ],
    [
      'a new Node of another name',
      () => n1.create(NODES, undefined, object('Node', 'n3')),
      `${NODE} is not allowed to modify node "n3"`,
    ],
    [
      'its taints',
      () => n1.patch(NODES, undefined, 'n1', MERGE, { spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] } }),
      `${NODE} is not allowed to modify taints`,
    ],
    [
      'its owners',
      () =>
        n1.patch(NODES, undefined, 'n1', MERGE, {
          metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'own', uid: 'x' }] },
        }),
      `${NODE} is not allowed to modify ownerReferences`,
    ],
    [
      'labels that attract Pods',
      () => label({ 'node-restriction.kubernetes.io/a': 'x', 'node-role.kubernetes.io/b': '', 'x.k8s.io/c': 'x' }),
      'is not allowed to modify labels: node-restriction.kubernetes.io/a, node-role.kubernetes.io/b, x.k8s.io/c',
    ],
    [
      'a Lease of another node',
      () => n1.create(LEASES, 'kube-node-lease', lease('n2')),
      'can only access node lease with the same name as the requesting node',
    ],
    [
      'a Lease in another namespace',
      () => n1.create(LEASES, 'default', lease('n1', 'default')),
      'can only access leases in the "kube-node-lease" system namespace',
    ],
    [
      'a claim',
      () => n1.patch(PERSISTENT_VOLUME_CLAIMS, 'default', 'claim', MERGE, { metadata: { labels: { a: 'b' } } }),
      'may only update PVC status',
    ],
    [
      'a request for the certificate of another node',
      () => certificate('O=system:nodes, CN=system:node:n2'),
      'can only create a node CSR with CN=system:node:n1',
    ],
    [
      'a malformed request for a certificate',
      () => certificate('CN=a', { request: 'YQ==' }),
      'unable to parse csr: PEM block type must be CERTIFICATE REQUEST',
    ],
    [
      'the phase of a claim',
      () => claimStatus({ status: { phase: 'Lost' } }),
      `${NODE} is not allowed to update fields other than status.capacity and status.conditions`,
    ],
  ])('a node may not write %s', async (_, act, cause) => {
    const { code, message } = await failure(act());
    expect({ code, message }).toEqual({ code: 403, message: expect.stringContaining(`forbidden: ${cause}`) });
  });

  test('a node may not create its Node with labels that attract Pods', async () => {
    const n4 = apiFor(started.backend, nodeUser('n4'));
    const labelled = (key: string) => n4.create(NODES, undefined, object('Node', 'n4', {}, { labels: { [key]: 'x' } }));
    expect((await failure(labelled('node-role.kubernetes.io/a'))).message).toBe(
      'nodes "n4" is forbidden: node "n4" is not allowed to set the following labels: node-role.kubernetes.io/a',
    );
    await labelled('node.kubernetes.io/instance-type');
  });

  test('a node may not request a token for a Pod that does not exist', async () => {
    expect(await failure(token({ name: 'absent', uid: 'x' }))).toMatchObject({ code: 404 });
  });

  test('a node whose user has no node name may write nothing', async () => {
    const unnamed = asClient(started.backend, nodeUser(''));
    expect((await failure(unnamed.create(NODES, undefined, object('Node', 'n5')))).message).toBe(
      'nodes "n5" is forbidden: could not determine node from user "system:node:"',
    );
  });
});

describe('records of Pods', () => {
  const recordOf = (about: Pod | undefined, nodeName: string | undefined, number = ++serial): PodRecord => ({
    apiVersion: 'lifepod.io/v1',
    kind: 'PodRecord',
    metadata: { name: recordName(about?.metadata.uid ?? 'gone', number), namespace: 'default' },
    podName: about?.metadata.name ?? 'gone',
    podUID: about?.metadata.uid ?? 'gone',
    ...(nodeName === undefined ? {} : { nodeName }),
    transitions: [],
  });
  const create = (record: PodRecord) => n1.create(POD_RECORDS, 'default', record);
  const CAUSE = 'node "n1" can only write records of its own pods';

  test('a node may write records of its Pods, and of Pods that do not exist', async () => {
    await create(recordOf(undefined, 'n1'));
    const created = (await create(recordOf(own, 'n1'))) as PodRecord;
    await n1.update(POD_RECORDS, created);
  });

  test('a node may continue the record of an older version, which names no node', async () => {
    const older = (await started.registry.create(POD_RECORDS, 'default', recordOf(own, undefined))) as PodRecord;
    await n1.update(POD_RECORDS, { ...older, nodeName: 'n1' } as PodRecord);
  });

  test.each<[string, () => Promise<unknown>]>([
    ['that names no node', () => create(recordOf(own, undefined))],
    ['that names another node', () => create(recordOf(own, 'n2'))],
    ['about a Pod on another node', () => create(recordOf(foreign, 'n1'))],
    [
      'that another node has written',
      async () => {
        const { registry } = started;
        const written = (await registry.create(POD_RECORDS, 'default', recordOf(undefined, 'n2'))) as PodRecord;
        await n1.update(POD_RECORDS, { ...written, nodeName: 'n1' } as PodRecord);
      },
    ],
  ])('a node may not write a record %s', async (_, act) => {
    expect((await failure(act())).message).toContain(CAUSE);
  });
});

test('other users are not restricted', async () => {
  const { registry } = started;
  await registry.patch(NODES, undefined, 'n2', MERGE, { metadata: { labels: { 'node-role.kubernetes.io/a': '' } } });
});
