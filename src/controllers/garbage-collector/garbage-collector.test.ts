import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createCatalog } from '../../api/catalog.ts';
import type { CoreV1Event, Pod } from '../../api/generated/types.ts';
import { kinds } from '../../api/kinds.ts';
import { CONFIG_MAPS, EVENTS, PERSISTENT_VOLUMES, PODS } from '../../api/resources.ts';
import { type RegistryBackend, registryBackend } from '../../client/registry-fixture.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { createVirtualTimers, type VirtualTimers } from '../../platform/virtual-timers.ts';
import {
  type Collector,
  type CollectorOptions,
  configMap,
  ownedBy,
  startCollector,
} from './garbage-collector-fixture.ts';

let backend: RegistryBackend;
let timers: VirtualTimers;
let collector: Collector | undefined;
beforeEach(async () => {
  timers = createVirtualTimers();
  backend = await registryBackend({ timers, namespaces: ['a', 'b'] });
});
afterEach(() => collector?.kill());

const start = async (options: Partial<CollectorOptions> = {}): Promise<void> => {
  collector = startCollector(backend, { timers, ...options });
  await collector.started;
};
const names = (): string[] =>
  backend
    .objects(CONFIG_MAPS)
    .map(({ metadata }) => metadata.name)
    .sort();
const found = (name: string): KubeObject | undefined =>
  backend.objects(CONFIG_MAPS).find(({ metadata }) => metadata.name === name);
const hold = { finalizers: ['x.io/hold'] };
const release = (name: string) =>
  backend.patch(CONFIG_MAPS, 'a', name, 'application/merge-patch+json', { metadata: { finalizers: [] } });
const settled = async (): Promise<void> => {
  for (let i = 0; i < 100; i++) await new Promise(setImmediate);
};
const remove = (name: string, propagationPolicy?: string) =>
  backend.delete(CONFIG_MAPS, 'a', name, { propagationPolicy });

test('the dependents of a deleted object are deleted, and theirs', async () => {
  const owner = await configMap(backend, 'owner');
  const child = await configMap(backend, 'child', [ownedBy(owner)]);
  await start();
  await configMap(backend, 'grandchild', [ownedBy(child)]);
  await configMap(backend, 'other');
  await settled();
  expect(names()).toEqual(['child', 'grandchild', 'other', 'owner']);
  await remove('owner', 'Background');
  await vi.waitFor(() => expect(names()).toEqual(['other']));
});

test('with the policy Foreground, an object waits for the dependents that block it', async () => {
  const owner = await configMap(backend, 'owner');
  const child = await configMap(backend, 'child', [ownedBy(owner, { blockOwnerDeletion: true })]);
  await configMap(backend, 'grandchild', [ownedBy(child, { blockOwnerDeletion: true })], hold);
  await start();
  await remove('owner', 'Foreground');
  await vi.waitFor(() => expect(found('grandchild')?.metadata.deletionTimestamp).toBeDefined());
  await settled();
  expect(names()).toEqual(['child', 'grandchild', 'owner']);
  expect(found('child')?.metadata.finalizers).toEqual(['foregroundDeletion']);
  await release('grandchild');
  await vi.waitFor(() => expect(names()).toEqual([]));
});

test('with the policy Foreground, an object does not wait for dependents that do not block it', async () => {
  const owner = await configMap(backend, 'owner');
  await configMap(backend, 'child', [ownedBy(owner)], hold);
  await start();
  await remove('owner', 'Foreground');
  await vi.waitFor(() => expect(names()).toEqual(['child']));
  await vi.waitFor(() => expect(found('child')?.metadata.deletionTimestamp).toBeDefined());
});

test('with the policy Orphan, the dependents lose their reference and remain', async () => {
  const owner = await configMap(backend, 'owner');
  const second = await configMap(backend, 'second');
  await configMap(backend, 'child', [ownedBy(owner, { blockOwnerDeletion: true })]);
  await configMap(backend, 'shared', [ownedBy(owner), ownedBy(second)]);
  await start();
  await remove('owner', 'Orphan');
  await vi.waitFor(() => expect(names()).toEqual(['child', 'second', 'shared']));
  await settled();
  expect([found('child')?.metadata.ownerReferences, found('shared')?.metadata.ownerReferences]).toEqual([
    undefined,
    [ownedBy(second)],
  ]);
});

test.each([[['one']], [['one', 'two']], [['self']]])(
  'objects that block each other are deleted in the foreground if clients delete %j',
  async (deleted) => {
    const blocking = { blockOwnerDeletion: true };
    const one = await configMap(backend, 'one');
    const two = await configMap(backend, 'two', [ownedBy(one, blocking)]);
    const self = await configMap(backend, 'self');
    for (const [name, owner] of [
      ['one', two],
      ['self', self],
    ] as const) {
      const change = { metadata: { ownerReferences: [ownedBy(owner, blocking)] } };
      await backend.patch(CONFIG_MAPS, 'a', name, 'application/merge-patch+json', change);
    }
    for (const name of deleted) await remove(name, 'Foreground');
    await start();
    await vi.waitFor(() => expect(names()).toEqual(deleted.includes('self') ? ['one', 'two'] : ['self']));
  },
);

test('objects whose owner never existed or has been replaced are deleted', async () => {
  const owner = await configMap(backend, 'owner');
  await configMap(backend, 'replaced', [ownedBy(owner, { uid: 'other' })]);
  await configMap(backend, 'owned', [ownedBy(owner)]);
  await start();
  await vi.waitFor(() => expect(names()).toEqual(['owned', 'owner']));
  await configMap(backend, 'lost', [ownedBy(owner, { name: 'none', uid: 'none' })]);
  await vi.waitFor(() => expect(names()).toEqual(['owned', 'owner']));
});

test('an owner in another namespace counts as absent, with an Event', async () => {
  const owner = await configMap(backend, 'owner', [], { namespace: 'b' });
  await start();
  await configMap(backend, 'child', [ownedBy(owner)]);
  await vi.waitFor(() => expect(names()).toEqual(['owner']));
  await vi.waitFor(() => expect(backend.objects(EVENTS)).toHaveLength(1));
  expect(backend.objects(EVENTS)[0] as CoreV1Event).toMatchObject({
    involvedObject: { kind: 'ConfigMap', name: 'child', namespace: 'a' },
    type: 'Warning',
    reason: 'OwnerRefInvalidNamespace',
    message: `ownerRef [v1/ConfigMap, namespace: a, name: owner, uid: ${owner.metadata.uid}] does not exist in namespace "a"`,
  });
});

test('a cluster-scoped object whose owner is of a namespaced kind is kept', async () => {
  const owner = await configMap(backend, 'owner');
  await backend.set(PERSISTENT_VOLUMES, {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'v', ownerReferences: [ownedBy(owner)] },
    spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/x' } },
  } as KubeObject);
  await start();
  await remove('owner');
  await settled();
  expect(backend.objects(PERSISTENT_VOLUMES)).toHaveLength(1);
});

test('an object with a living owner loses the references to absent and waiting owners', async () => {
  const living = await configMap(backend, 'living');
  const waiting = await configMap(backend, 'waiting');
  const absent = ownedBy(living, { name: 'absent', uid: 'absent' });
  await configMap(backend, 'child', [ownedBy(living), absent, ownedBy(waiting, { blockOwnerDeletion: true })]);
  await start();
  await remove('waiting', 'Foreground');
  await vi.waitFor(() => expect(names()).toEqual(['child', 'living']));
  expect(found('child')?.metadata.ownerReferences).toEqual([ownedBy(living)]);
});

test('an object whose owner is of an unknown kind is kept until the kind is added', async () => {
  const isSecret = ({ kind }: { kind: string }): boolean => kind === 'Secret';
  const catalog = createCatalog(kinds.filter((kind) => !isSecret(kind)));
  const other = await configMap(backend, 'other');
  await configMap(backend, 'child', [ownedBy(other, { kind: 'Secret', name: 'none', uid: 'none' })]);
  await start({ catalog });
  await settled();
  expect(names()).toEqual(['child', 'other']);
  catalog.add(...kinds.filter(isSecret));
  await vi.waitFor(() => expect(names()).toEqual(['other']));
});

test('a change of the object between its examination and its deletion is noticed', async () => {
  const living = await configMap(backend, 'living');
  await configMap(backend, 'child', [ownedBy(living, { name: 'none', uid: 'none' })]);
  let isFirst = true;
  const serving = { ...backend };
  serving.delete = async (...args) => {
    const change = { metadata: { ownerReferences: [ownedBy(living)] } };
    if (isFirst) await backend.patch(CONFIG_MAPS, 'a', 'child', 'application/merge-patch+json', change);
    isFirst = false;
    return backend.delete(...args);
  };
  collector = startCollector(serving, { timers });
  await collector.started;
  await vi.waitFor(() => expect(isFirst).toBe(false));
  await settled();
  expect(names()).toEqual(['child', 'living']);
});

test('a failed call is repeated', async () => {
  const owner = await configMap(backend, 'owner');
  await configMap(backend, 'child', [ownedBy(owner)]);
  await start();
  backend.failNext('delete configmaps a/child', new Error('not now'));
  await remove('owner');
  await vi.waitFor(() => expect(backend.calls).toContain('delete configmaps a/child'));
  await settled();
  expect(names()).toEqual(['child']);
  timers.advance(60_000);
  await vi.waitFor(() => expect(names()).toEqual([]));
});

test('a Pod with defer containers is deleted for the reason OwnerDeleted', async () => {
  const owner = await configMap(backend, 'owner');
  await backend.set(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'a', ownerReferences: [ownedBy(owner)], finalizers: ['x.io/hold'] },
    spec: {
      containers: [{ name: 'c', image: 'i' }],
      deferContainers: [{ name: 'd', image: 'i', trigger: 'PreExit' }],
    },
  } as Pod);
  await start();
  await remove('owner');
  const pod = (): Pod => backend.objects(PODS)[0] as Pod;
  await vi.waitFor(() => expect(pod().metadata.deletionTimestamp).toBeDefined());
  expect(pod().status?.conditions).toContainEqual(
    expect.objectContaining({ type: 'DeletionReason', status: 'True', reason: 'OwnerDeleted' }),
  );
});

test('a Pod that was about to be deleted when the garbage collector died is not announced as deleted if it has an owner now', async () => {
  const owner = await configMap(backend, 'owner');
  const lost = ownedBy(owner, { name: 'none', uid: 'none' });
  await backend.set(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'a', ownerReferences: [lost] },
    spec: { containers: [{ name: 'c', image: 'i' }], deferContainers: [{ name: 'd', image: 'i', trigger: 'PreExit' }] },
  } as Pod);
  const dead = Promise.withResolvers<void>();
  await start({ writes: 1, died: dead.resolve });
  await dead.promise;
  const reason = () =>
    (backend.objects(PODS)[0] as Pod).status?.conditions?.find(({ type }) => type === 'DeletionReason');
  expect(reason()?.status).toBe('True');
  const change = { metadata: { ownerReferences: [ownedBy(owner)] } };
  await backend.patch(PODS, 'a', 'p', 'application/merge-patch+json', change);
  await start();
  await vi.waitFor(() => expect(reason()?.status).toBe('False'));
});
