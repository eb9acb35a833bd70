import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { PersistentVolume, PersistentVolumeClaim, Pod, StorageClass } from '../../api/generated/types.ts';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, STORAGE_CLASSES } from '../../api/resources.ts';
import { type RegistryBackend, registryBackend, withInformers } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import { alreadyExists, internalError, notFound, serviceUnavailable } from '../../machinery/status.ts';
import type { Log } from '../../platform/platform.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { createVirtualTimers, type VirtualTimers } from '../../platform/virtual-timers.ts';
import { SELECTED_NODE } from '../../scheduling/volume-claims.ts';
import { localPathClass } from './local-path.ts';
import { startPersistentVolumes } from './persistent-volumes.ts';

let backend: RegistryBackend;
let timers: VirtualTimers;
let stop: AbortController;
let folderCalls: string[];
let errors: string[];
beforeEach(async () => {
  timers = createVirtualTimers();
  backend = await registryBackend({ timers });
  stop = new AbortController();
  folderCalls = [];
  errors = [];
});
afterEach(() => stop.abort());

const start = (): Promise<void> => {
  const log: Log = { ...silentLog, warn: (_, fields) => void errors.push(String(fields?.['error'])) };
  const changed = (verb: string) => async (name: string) => void folderCalls.push(`${verb} ${name}`);
  return startPersistentVolumes({
    ...withInformers({ client: clientOf(backend), timers, log }),
    signal: stop.signal,
    folders: {
      nodeName: 'n',
      path: (name) => `/folders/${name}`,
      create: changed('create'),
      remove: changed('remove'),
      removeUnused: changed('removeUnused'),
    },
  });
};
const settled = async (): Promise<void> => {
  for (let i = 0; i < 100; i++) await new Promise(setImmediate);
};
const classes = (): string[] =>
  (backend.objects(STORAGE_CLASSES) as StorageClass[]).map(({ metadata }) => metadata.name);
const claims = (): PersistentVolumeClaim[] => backend.objects(PERSISTENT_VOLUME_CLAIMS) as PersistentVolumeClaim[];
const SPEC = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };
const claim = (name: string, annotations = {}, storageClassName = 'local-path') =>
  backend.set<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIMS, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace: 'a', annotations },
    spec: { ...SPEC, storageClassName },
  });
const pod = (name: string, volumes: NonNullable<Pod['spec']>['volumes']) =>
  backend.set<Pod>(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'a' },
    spec: { containers: [{ name: 'app', image: 'x' }], volumes },
  });

test('the class local-path is created unless it exists', async () => {
  await start();
  expect(classes()).toEqual(['local-path']);
  stop.abort();
  stop = new AbortController();
  await start();
  expect(backend.calls.filter((call) => call.startsWith('create storageclasses'))).toHaveLength(1);
});

test('the start succeeds if another client creates the class local-path first, and fails after any other error', async () => {
  backend.failNext('create storageclasses', alreadyExists(STORAGE_CLASSES, 'local-path'));
  await start();
  stop.abort();
  stop = new AbortController();
  backend.failNext('create storageclasses', internalError('broken'));
  await expect(start()).rejects.toThrow('broken');
});

test('a claim with a selected node gets a folder and a volume; once it is deleted, both are removed', async () => {
  await claim('data', { [SELECTED_NODE]: 'n' });
  await start();
  await vi.waitFor(() => expect(claims()[0]?.status?.phase).toBe('Bound'));
  const [volume] = backend.objects(PERSISTENT_VOLUMES) as PersistentVolume[];
  const name = `pvc-${claims()[0]?.metadata.uid}`;
  expect([volume?.metadata.name, folderCalls]).toEqual([name, [`create ${name}`]]);
  await vi.waitFor(() => expect(backend.calls).toContain('watch persistentvolumeclaims /'));
  await backend.remove(PERSISTENT_VOLUME_CLAIMS, 'a', 'data');
  await vi.waitFor(() => expect(backend.objects(PERSISTENT_VOLUMES)).toEqual([]));
  expect(new Set(folderCalls)).toEqual(new Set([`create ${name}`, `remove ${name}`]));
});

test('an empty folder of a claim that was deleted without a volume is removed, unless the volume exists', async () => {
  const [first, second] = [await claim('first'), await claim('second')];
  await backend.set<PersistentVolume>(PERSISTENT_VOLUMES, {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: `pvc-${second.metadata.uid}` },
    spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/x' } },
  });
  await start();
  for (const ref of ['persistentvolumeclaims', 'persistentvolumes', 'pods'])
    await vi.waitFor(() => expect(backend.calls).toContain(`watch ${ref} /`));
  for (const { metadata } of [first, second]) await backend.remove(PERSISTENT_VOLUME_CLAIMS, 'a', metadata.name);
  await vi.waitFor(() => expect(folderCalls).toContain(`removeUnused pvc-${first.metadata.uid}`));
  await settled();
  expect(folderCalls).toEqual([`removeUnused pvc-${first.metadata.uid}`]);
});

test('the ephemeral volume of a Pod gets a claim, which is deleted after the Pod', async () => {
  const volume = { name: 'scratch', ephemeral: { volumeClaimTemplate: { spec: SPEC } } };
  await backend.set(STORAGE_CLASSES, localPathClass);
  await pod('web', [volume]);
  await start();
  await vi.waitFor(() => expect(claims().map(({ metadata }) => metadata.name)).toEqual(['web-scratch']));
  for (const ref of ['persistentvolumeclaims', 'pods'])
    await vi.waitFor(() => expect(backend.calls).toContain(`watch ${ref} /`));
  await settled();
  expect(claims()[0]?.metadata.deletionTimestamp).toBeUndefined();
  await backend.remove(PODS, 'a', 'web');
  await vi.waitFor(() => expect(claims()).toEqual([]));
});

test.each([
  ['the claim of the Pod', 'own'],
  ['a claim with its name that the Pod does not own', 'other'],
])('once %s is deleted, the ephemeral volume of the Pod gets a new claim', async (_, owner) => {
  const volume = { name: 'scratch', ephemeral: { volumeClaimTemplate: { spec: SPEC } } };
  await backend.set(STORAGE_CLASSES, localPathClass);
  const first = owner === 'other' ? await claim('web-scratch') : undefined;
  const { metadata } = await pod('web', [volume]);
  await start();
  await vi.waitFor(() => expect(claims()).toHaveLength(1));
  for (const ref of ['persistentvolumeclaims', 'pods'])
    await vi.waitFor(() => expect(backend.calls).toContain(`watch ${ref} /`));
  await settled();
  const uid = claims()[0]?.metadata.uid;
  expect(uid === first?.metadata.uid).toBe(owner === 'other');
  await backend.remove(PERSISTENT_VOLUME_CLAIMS, 'a', 'web-scratch');
  await vi.waitFor(() => {
    expect(claims()[0]?.metadata.ownerReferences).toMatchObject([{ uid: metadata.uid }]);
    expect(claims()[0]?.metadata.uid).not.toBe(uid);
  });
});

test('a failed step is repeated, unless its object no longer exists', async () => {
  await claim('gone', { [SELECTED_NODE]: 'n' });
  backend.failNext('create persistentvolumes', notFound(PERSISTENT_VOLUMES, 'x'));
  await start();
  await vi.waitFor(() => expect(backend.calls.some((call) => call.startsWith('create persistentvolumes'))).toBe(true));
  await settled();
  expect(errors.filter((text) => text.includes('not found'))).toEqual([]);
  backend.failNext('create persistentvolumes', serviceUnavailable('not now'));
  await claim('kept', { [SELECTED_NODE]: 'n' });
  await vi.waitFor(() => expect(errors).toContain('not now'));
  timers.advance(60_000);
  await vi.waitFor(() =>
    expect(claims().find(({ metadata }) => metadata.name === 'kept')?.status?.phase).toBe('Bound'),
  );
});
