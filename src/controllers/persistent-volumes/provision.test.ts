import { beforeEach, describe, expect, it } from 'vitest';
import type { PersistentVolumeClaim, StorageClass } from '../../api/generated/types.ts';
import { PERSISTENT_VOLUMES } from '../../api/resources.ts';
import { alreadyExists, serviceUnavailable } from '../../machinery/status.ts';
import { SELECTED_NODE } from '../../scheduling/volume-claims.ts';
import { reconcileClaim } from './claims.ts';
import { LOCAL_PATH_PROVISIONER, localVolume } from './local-path.ts';
import { type StorageFixture, storageFixture } from './storage-fixture.ts';

let fixture: StorageFixture;
beforeEach(async () => {
  fixture = await storageFixture();
});

const OWN: Partial<StorageClass> = { provisioner: LOCAL_PATH_PROVISIONER, reclaimPolicy: 'Retain' };
const on = (node: string) => ({ name: '', annotations: { [SELECTED_NODE]: node } });
const classed = (change: PersistentVolumeClaim['spec'] = {}) => ({ spec: { storageClassName: 'class', ...change } });

describe('a claim for which no volume exists', () => {
  it.each<[string, Partial<StorageClass> | undefined, Partial<PersistentVolumeClaim>, string]>([
    [
      'a claim without a class waits for a volume',
      undefined,
      {},
      'Normal FailedBinding data: no persistent volumes available for this claim and no storage class is set',
    ],
    [
      'a claim of a missing class gets no volume',
      undefined,
      classed(),
      'Warning ProvisioningFailed data: storageclass.storage.k8s.io "class" not found',
    ],
    [
      'a claim of a class without a provisioner gets no volume',
      {},
      classed(),
      'Warning ProvisioningFailed data: no volume plugin matched name: kubernetes.io/no-provisioner',
    ],
    [
      'a claim of a class of another provisioner waits for that provisioner',
      { provisioner: 'example.com/other' },
      classed(),
      "Normal ExternalProvisioning data: Waiting for a volume to be created either by the external provisioner 'example.com/other' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.",
    ],
    [
      'a claim for a block device gets no folder',
      OWN,
      classed({ volumeMode: 'Block' }),
      'Warning ProvisioningFailed data: failed to provision volume with StorageClass "class": block volumes are not supported',
    ],
    [
      'a claim whose Pod runs on another node gets no folder',
      OWN,
      { ...classed(), metadata: on('m') },
      'Warning ProvisioningFailed data: failed to provision volume with StorageClass "class": the node m has no folder for volumes',
    ],
  ])('%s', async (_, storageClass, change, event) => {
    if (storageClass !== undefined) await fixture.putClass('class', storageClass);
    const claim = await fixture.putClaim('data', change);
    fixture.writes();
    await reconcileClaim(fixture.storage, claim);
    expect(fixture.reported).toEqual([event]);
    expect([...fixture.folderCalls, ...fixture.writes()]).toEqual([]);
  });
});

describe('a claim of the class local-path', () => {
  const provision = async (change: Partial<PersistentVolumeClaim> = classed()) => {
    await fixture.putClass('class', OWN);
    const claim = await fixture.putClaim('data', change);
    fixture.writes();
    await reconcileClaim(fixture.storage, claim);
  };
  const folder = () => `pvc-${fixture.claim('data')?.metadata.uid}`;
  const PROVISIONING = 'Normal Provisioning data: External provisioner is provisioning volume for claim "a/data"';

  it.each([
    ['without a selected node', classed()],
    ['whose Pod runs on this node', { ...classed(), metadata: on('n') }],
  ])('a claim %s gets a folder and a volume that is reserved for the claim', async (_, change) => {
    await provision(change);
    expect(fixture.folderCalls).toEqual([`create ${folder()}`]);
    expect(fixture.writes()).toEqual([`create persistentvolumes /${folder()}`]);
    expect(fixture.volume(folder())).toMatchObject({
      metadata: { annotations: { 'pv.kubernetes.io/provisioned-by': 'lifepod.io/local-path' } },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        volumeMode: 'Filesystem',
        persistentVolumeReclaimPolicy: 'Retain',
        storageClassName: 'class',
        local: { path: `/folders/${folder()}` },
        nodeAffinity: {
          required: {
            nodeSelectorTerms: [
              { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: ['n'] }] },
            ],
          },
        },
        claimRef: {
          apiVersion: 'v1',
          kind: 'PersistentVolumeClaim',
          namespace: 'a',
          name: 'data',
          uid: fixture.claim('data')?.metadata.uid,
          resourceVersion: fixture.claim('data')?.metadata.resourceVersion,
        },
      },
    });
    expect(fixture.reported).toEqual([
      PROVISIONING,
      `Normal ProvisioningSucceeded data: Successfully provisioned volume ${folder()}`,
    ]);
  });
  it('the provisioning succeeds if the volume already exists', async () => {
    fixture.backend.failNext('create persistentvolumes /', alreadyExists(PERSISTENT_VOLUMES, 'x'));
    await provision();
    expect(fixture.reported.at(-1)).toMatch(/^Normal ProvisioningSucceeded/);
  });
  it('the provisioning fails, to be retried, if the volume cannot be created', async () => {
    fixture.backend.failNext('create persistentvolumes /', serviceUnavailable('not now'));
    await expect(provision()).rejects.toThrow('not now');
    expect(fixture.reported).toEqual([PROVISIONING]);
  });
  it('the provisioning fails with an Event and without a volume if the folder cannot be created', async () => {
    fixture.failFolders(new Error('no space'));
    await expect(provision()).rejects.toThrow('no space');
    expect(fixture.reported).toEqual([
      PROVISIONING,
      'Warning ProvisioningFailed data: failed to provision volume with StorageClass "class": no space',
    ]);
    expect(fixture.writes()).toEqual([]);
  });
});

describe('the volume of the class local-path', () => {
  it('the volume has the policy Delete and no capacity if the class and the claim name none', () => {
    const { spec } = localVolume(
      { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'data' } },
      { apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', metadata: { name: 'class' }, provisioner: 'x' },
      { nodeName: 'n', path: (name) => `/${name}` },
    );
    expect(spec).toMatchObject({
      capacity: { storage: '0' },
      accessModes: [],
      persistentVolumeReclaimPolicy: 'Delete',
      claimRef: { namespace: '', name: 'data', uid: '' },
    });
    expect(spec?.claimRef).not.toHaveProperty('resourceVersion');
  });
});
