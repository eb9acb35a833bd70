import { beforeEach, describe, expect, it } from 'vitest';
import type { PersistentVolume } from '../../api/generated/types.ts';
import { PERSISTENT_VOLUMES } from '../../api/resources.ts';
import { conflict, notFound, serviceUnavailable } from '../../machinery/status.ts';
import { LOCAL_PATH_PROVISIONER, PROVISIONED_BY } from './local-path.ts';
import { type StorageFixture, storageFixture } from './storage-fixture.ts';
import { reconcileVolume } from './volumes.ts';

let fixture: StorageFixture;
beforeEach(async () => {
  fixture = await storageFixture();
});

const PROTECTION = 'kubernetes.io/pv-protection';
const reserved = (uid?: string, name = 'data') => ({ spec: { claimRef: { namespace: 'a', name, uid } } });
/** Changes for a volume that this controller provisioned for a claim that has been deleted. */
const own = (spec: PersistentVolume['spec'] = {}, annotation = LOCAL_PATH_PROVISIONER): Partial<PersistentVolume> => ({
  metadata: { name: '', annotations: { [PROVISIONED_BY]: annotation } },
  spec: {
    hostPath: undefined,
    local: { path: '/folders/disk' },
    nodeAffinity: { required: { nodeSelectorTerms: [{}] } },
    persistentVolumeReclaimPolicy: 'Delete',
    ...reserved('former').spec,
    ...spec,
  },
  status: { phase: 'Released' },
});
async function reconcile(change: Partial<PersistentVolume> = {}): Promise<string[]> {
  const volume = await fixture.putVolume('disk', change);
  fixture.writes();
  await reconcileVolume(fixture.storage, volume);
  return fixture.writes();
}
/** Like reconcile(), but deletes the volume first. The finalizers keep the volume in the API. */
async function reconcileDeleted(change: Partial<PersistentVolume>): Promise<string[]> {
  await fixture.putVolume('disk', change);
  await fixture.backend.remove(PERSISTENT_VOLUMES, undefined, 'disk');
  fixture.writes();
  await reconcileVolume(fixture.storage, fixture.volume('disk') as PersistentVolume);
  return fixture.writes();
}
const phase = () => fixture.volume('disk')?.status?.phase;
const STATUS = 'update persistentvolumes/status /disk';

describe('the phase of a volume', () => {
  it.each([
    ['that no claim has reserved', {}, 'Available'],
    ['that is reserved for a claim without a UID', reserved(), 'Available'],
    ['whose claim has been deleted', reserved('former'), 'Released'],
    ['whose claim has been replaced by another with its name', reserved('former', 'present'), 'Released'],
    ['that could not be reclaimed', { ...reserved('former'), status: { phase: 'Failed' } }, 'Failed'],
  ])('the phase of a volume %s is set', async (_, change, expected) => {
    await fixture.putClaim('present');
    const writes = await reconcile({ status: { phase: 'Pending' }, ...change });
    expect(phase()).toBe(expected);
    expect(writes).toEqual(expected === 'Failed' ? [] : [STATUS]);
  });
  it.each(['shows', 'does not show yet'])(
    'the phase of a volume is Bound if the informer %s its claim',
    async (shown) => {
      const { metadata } = await fixture.putClaim('data');
      if (shown !== 'shows') fixture.unseen.add('data');
      expect(await reconcile(reserved(metadata.uid))).toEqual([STATUS]);
      expect(phase()).toBe('Bound');
    },
  );
  it('the API is not read if the informer shows the claim', async () => {
    const { metadata } = await fixture.putClaim('data');
    fixture.backend.failNext('get persistentvolumeclaims a/data', serviceUnavailable('not now'));
    expect(await reconcile(reserved(metadata.uid))).toEqual([STATUS]);
  });
  it('a volume is not released if the API cannot be read', async () => {
    fixture.backend.failNext('get persistentvolumeclaims a/data', serviceUnavailable('not now'));
    await expect(reconcile({ ...own(), status: { phase: 'Bound' } })).rejects.toThrow('not now');
    expect(phase()).toBe('Bound');
  });
  it('a volume with the right phase needs no write', async () => {
    expect(await reconcile()).toEqual([]);
  });
});

describe('a released volume', () => {
  it('a released volume that this controller provisioned is deleted with its folder', async () => {
    expect(await reconcile(own())).toEqual(['delete persistentvolumes /disk']);
    expect(fixture.folderCalls).toEqual(['remove disk']);
    expect(fixture.volume('disk')?.metadata.deletionTimestamp).toBeDefined();
    expect(fixture.reported).toEqual([]);
  });
  it.each([
    ['has the policy Retain', own({ persistentVolumeReclaimPolicy: 'Retain' })],
    ['has failed', { ...own(), status: { phase: 'Failed' } }],
    ['is not reserved', { ...own({ claimRef: undefined }), status: { phase: 'Available' } }],
  ])('a volume that %s is kept with its folder', async (_, change) => {
    expect(await reconcile(change)).toEqual([]);
    expect(fixture.folderCalls).toEqual([]);
  });
  it.each([
    ['another provisioner created', own({}, 'example.com/other')],
    ['a user created', { ...own(), metadata: { name: '' } }],
    ['is not a local folder', own({ local: undefined, hostPath: { path: '/folders/disk' } })],
  ])('a released volume that %s fails and keeps its content', async (_, change) => {
    const message = 'error getting deleter volume plugin for volume "disk": no deletable volume plugin matched';
    expect(await reconcile(change)).toEqual([STATUS]);
    expect(fixture.volume('disk')?.status).toEqual({ phase: 'Failed', message });
    expect(fixture.volume('disk')?.metadata.deletionTimestamp).toBeUndefined();
    expect(fixture.reported).toEqual([`Warning VolumeFailedDelete disk: ${message}`]);
    expect(fixture.folderCalls).toEqual([]);
  });
  it('a released volume that has its folder elsewhere fails and keeps its content, and an Event names the folder', async () => {
    expect(await reconcile(own({ local: { path: '/other/disk' } }))).toEqual([STATUS]);
    expect(fixture.volume('disk')?.status?.phase).toBe('Failed');
    expect(fixture.reported).toEqual([
      'Warning VolumeFailedDelete disk: the folder /other/disk is kept, because it is not /folders/disk, the folder of this volume in the data folder of this engine: if no other engine uses it, delete it, then delete the PersistentVolume',
    ]);
    expect(fixture.folderCalls).toEqual([]);
  });
  it('a volume whose folder cannot be removed is kept, which an Event reports', async () => {
    fixture.failFolders(new Error('busy'));
    await expect(reconcile(own())).rejects.toThrow('busy');
    expect(fixture.reported).toEqual(['Warning VolumeFailedDelete disk: busy']);
    expect(fixture.writes()).toEqual([]);
  });
  it.each([
    ['has been deleted', notFound(PERSISTENT_VOLUMES, 'disk')],
    ['has been replaced', conflict(PERSISTENT_VOLUMES, 'disk', 'another UID')],
  ])('the deletion of a volume that %s in the meantime succeeds', async (_, error) => {
    fixture.backend.failNext('delete persistentvolumes /disk', error);
    expect(await reconcile(own())).toHaveLength(1);
  });
  it('the deletion of a volume fails, to be retried, if the API cannot delete it', async () => {
    fixture.backend.failNext('delete persistentvolumes /disk', serviceUnavailable('not now'));
    await expect(reconcile(own())).rejects.toThrow('not now');
  });
  it('a volume that replaced the released one is not deleted', async () => {
    const { metadata, ...rest } = await fixture.putVolume('disk', own());
    await reconcileVolume(fixture.storage, { ...rest, metadata: { ...metadata, uid: 'replaced' } });
    expect(fixture.volume('disk')?.metadata.deletionTimestamp).toBeUndefined();
  });
});

describe('a volume that a client deleted', () => {
  it('a deleted volume is kept while its claim is bound to it', async () => {
    const { metadata } = await fixture.putClaim('data');
    expect(await reconcileDeleted({ ...own(reserved(metadata.uid).spec), status: { phase: 'Bound' } })).toEqual([]);
    expect(fixture.volume('disk')?.metadata.finalizers).toEqual([PROTECTION]);
    expect(fixture.folderCalls).toEqual([]);
  });
  it.each([
    ['a released volume that this controller provisioned', own(), ['remove disk']],
    ['a volume with the policy Retain', own({ persistentVolumeReclaimPolicy: 'Retain' }), []],
    ['a volume of another provisioner', own({}, 'example.com/other'), []],
    ['a free volume', {}, []],
  ])('%s is released by its finalizer, after the removal of only its own folder', async (_, change, folders) => {
    expect(await reconcileDeleted(change)).toEqual(['update persistentvolumes /disk']);
    expect(fixture.volume('disk')).toBeUndefined();
    expect(fixture.folderCalls).toEqual(folders);
  });
  it('a deleted volume keeps its finalizer while its folder cannot be removed', async () => {
    fixture.failFolders(new Error('busy'));
    await expect(reconcileDeleted(own())).rejects.toThrow('busy');
    expect(fixture.volume('disk')?.metadata.finalizers).toEqual([PROTECTION]);
  });
  it('only the finalizer of this controller is removed, and only once', async () => {
    const other = 'example.com/other';
    expect(await reconcileDeleted({ metadata: { name: '', finalizers: [other] } })).toHaveLength(1);
    const volume = fixture.volume('disk') as PersistentVolume;
    expect(volume.metadata.finalizers).toEqual([other]);
    await reconcileVolume(fixture.storage, volume);
    expect(fixture.writes()).toEqual([]);
  });
});
