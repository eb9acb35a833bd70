import { expect, test } from 'vitest';
import type {
  CoreV1Event,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  StorageClass,
} from '../../../api/generated/types.ts';
import { EVENTS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES } from '../../../api/resources.ts';
import { registryBackend } from '../../../client/registry-fixture.ts';
import { clientOf } from '../../../client/typed-client.ts';
import { forbidden } from '../../../machinery/status.ts';
import { BIND_COMPLETED } from '../../../scheduling/volume-claims.ts';
import { readBoundVolumes, unboundClaimsReader } from './read-claims.ts';

const claimOf = (name: string, annotations: Record<string, string>): PersistentVolumeClaim => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name, namespace: 'a', annotations },
  spec: {
    accessModes: ['ReadWriteOnce'],
    storageClassName: 'c',
    resources: { requests: { storage: '1Gi' } },
    ...(BIND_COMPLETED in annotations && { volumeName: 'v' }),
  },
});

const podOf = (message?: string): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', namespace: 'a' },
  spec: {
    containers: [{ name: 'app', image: 'i' }],
    volumes: ['open', 'bound', 'absent'].map((claimName) => ({
      name: claimName,
      persistentVolumeClaim: { claimName },
    })),
  },
  status:
    message === undefined
      ? {}
      : { conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }] },
});

const WAITING = podOf('0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.');

async function start() {
  const backend = await registryBackend();
  const client = clientOf(backend);
  await backend.set<StorageClass>(STORAGE_CLASSES, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'c' },
    provisioner: 'x.example/y',
  });
  await backend.set(PERSISTENT_VOLUME_CLAIMS, claimOf('open', {}));
  await backend.set(PERSISTENT_VOLUME_CLAIMS, claimOf('bound', { [BIND_COMPLETED]: 'yes' }));
  const { metadata } = await client.resource<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIMS).get('open', 'a');
  for (const [name, uid] of [
    ['own', metadata.uid],
    ['other', 'x'],
  ] as const)
    await backend.set<CoreV1Event>(EVENTS, {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name, namespace: 'a' },
      involvedObject: { kind: 'PersistentVolumeClaim', namespace: 'a', name: 'open', uid: uid ?? '' },
      reason: 'FailedBinding',
    });
  return { backend, client };
}

test('the unbound claims of a Pod are read with their Events and classes', async () => {
  const { client } = await start();
  const read = await unboundClaimsReader(client)(WAITING);
  expect(
    read?.map(({ claim, events, storageClass }) => [
      claim.metadata.name,
      events.map(({ metadata }) => metadata.name),
      storageClass?.provisioner,
    ]),
  ).toEqual([['open', ['own'], 'x.example/y']]);
  expect(await unboundClaimsReader(client)(podOf())).toHaveLength(1);
});

test('no claims are read for a Pod that waits for something else', async () => {
  const { client } = await start();
  expect(await unboundClaimsReader(client)(podOf('0/1 nodes are available: 1 Insufficient cpu.'))).toBeUndefined();
});

test('a user who may not read Events and StorageClasses gets the claims, and one who may not read claims gets none', async () => {
  const { backend, client } = await start();
  backend.failNext('list events', forbidden(EVENTS, '', 'no'));
  backend.failNext('get storageclasses', forbidden(STORAGE_CLASSES, 'c', 'no'));
  const read = await unboundClaimsReader(client)(WAITING);
  expect(read?.map(({ events, storageClass }) => [events, storageClass])).toEqual([[[], undefined]]);
  backend.failNext('get persistentvolumeclaims', forbidden(PERSISTENT_VOLUME_CLAIMS, 'open', 'no'));
  expect(await unboundClaimsReader(client)(WAITING)).toBeUndefined();
});

const VOLUME: PersistentVolume = {
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name: 'v' },
  spec: { accessModes: ['ReadWriteOnce'], capacity: { storage: '1Gi' }, hostPath: { path: '/v' } },
};

test('the volumes are read once for claims whose class creates none, and not if the user may not read them', async () => {
  const { backend, client } = await start();
  await backend.set(PERSISTENT_VOLUMES, VOLUME);
  const volumesOf = async (read: ReturnType<typeof unboundClaimsReader>) =>
    (await read(WAITING))?.map(({ volumes }) => volumes?.map(({ metadata }) => metadata.name));
  expect(await volumesOf(unboundClaimsReader(client))).toEqual([undefined]);
  await client.resource<StorageClass>(STORAGE_CLASSES).delete('c');
  const read = unboundClaimsReader(client);
  expect(await volumesOf(read)).toEqual([['v']]);
  backend.failNext('list persistentvolumes', forbidden(PERSISTENT_VOLUMES, '', 'no'));
  expect(await volumesOf(read)).toEqual([['v']]);
  expect(await volumesOf(unboundClaimsReader(client))).toEqual([undefined]);
});

test('the volumes of bound claims are read if one of them is on another node', async () => {
  const { backend, client } = await start();
  await backend.set(PERSISTENT_VOLUMES, VOLUME);
  const distant = podOf('0/1 nodes are available: 1 node(s) had volume node affinity conflict.');
  expect((await readBoundVolumes(client, distant))?.map(({ metadata }) => metadata.name)).toEqual(['v']);
  expect(await readBoundVolumes(client, WAITING)).toBeUndefined();
  backend.failNext('get persistentvolumes', forbidden(PERSISTENT_VOLUMES, 'v', 'no'));
  expect(await readBoundVolumes(client, distant)).toBeUndefined();
});
