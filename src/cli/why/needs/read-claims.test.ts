import { expect, test } from 'vitest';
import type { CoreV1Event, PersistentVolumeClaim, Pod, StorageClass } from '../../../api/generated/types.ts';
import { EVENTS, PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES } from '../../../api/resources.ts';
import { registryBackend } from '../../../client/registry-fixture.ts';
import { clientOf } from '../../../client/typed-client.ts';
import { forbidden } from '../../../machinery/status.ts';
import { BIND_COMPLETED } from '../../../scheduling/volume-claims.ts';
import { readUnboundClaims } from './read-claims.ts';

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
  const read = await readUnboundClaims(client, WAITING);
  expect(
    read?.map(({ claim, events, storageClass }) => [
      claim.metadata.name,
      events.map(({ metadata }) => metadata.name),
      storageClass?.provisioner,
    ]),
  ).toEqual([['open', ['own'], 'x.example/y']]);
  expect(await readUnboundClaims(client, podOf())).toHaveLength(1);
});

test('no claims are read for a Pod that waits for something else', async () => {
  const { client } = await start();
  expect(await readUnboundClaims(client, podOf('0/1 nodes are available: 1 Insufficient cpu.'))).toBeUndefined();
});

test('a user who may not read Events and StorageClasses gets the claims, and one who may not read claims gets none', async () => {
  const { backend, client } = await start();
  backend.failNext('list events', forbidden(EVENTS, '', 'no'));
  backend.failNext('get storageclasses', forbidden(STORAGE_CLASSES, 'c', 'no'));
  const read = await readUnboundClaims(client, WAITING);
  expect(read?.map(({ events, storageClass }) => [events, storageClass])).toEqual([[[], undefined]]);
  backend.failNext('get persistentvolumeclaims', forbidden(PERSISTENT_VOLUME_CLAIMS, 'open', 'no'));
  expect(await readUnboundClaims(client, WAITING)).toBeUndefined();
});
