import { expect, test } from 'vitest';
import type { CoreV1Event, DeferControl, Pod } from '../../api/generated/types.ts';
import type { KubeObject } from '../../machinery/meta.ts';
import { createMemoryStore } from '../../store/memory/memory-store.ts';
import { asClient, failure, PODS, pod, ref, type Started, startRegistry } from './testing.ts';

const EVENTS = ref('events');
const termination = {
  reason: 'Deleted',
  startedAt: '2026-01-01T00:00:00.000000Z',
  deadline: '2026-01-01T00:00:30.000000Z',
};
const deferContainers = ['first', 'second'].map((name) => ({ name, image: 'busybox:1.28', timeoutSeconds: 5 }));
const user = { name: 'jane', groups: [] };

async function ending(options: Parameters<typeof startRegistry>[0] = {}): Promise<Started> {
  const started = await startRegistry(options);
  const { registry } = started;
  await registry.create(PODS, 'default', pod('a', { nodeName: 'n1', deferContainers }));
  await registry.delete(PODS, 'default', 'a');
  return started;
}

const writeStatus = ({ registry }: Started, status: object): Promise<KubeObject> =>
  registry.patch(PODS, 'default', 'a', 'application/merge-patch+json', { status }, { subresource: 'status' });

const giveUp = ({ backend }: Started, skip: string, more: object = {}): Promise<KubeObject> => {
  const body: DeferControl = {
    apiVersion: 'lifepod.io/v1',
    kind: 'DeferControl',
    metadata: { name: 'a', namespace: 'default' },
    skip,
  };
  return asClient(backend, user).update(PODS, body, { subresource: 'defer', ...more });
};

const stored = async ({ registry }: Started): Promise<Pod> => (await registry.get(PODS, 'default', 'a')) as Pod;
const eventsOf = async ({ registry }: Started): Promise<CoreV1Event[]> =>
  (await registry.list(EVENTS, { namespace: 'default' })).items as CoreV1Event[];

test('giving up a defer container records its name in the status, and an Event on the Pod names the user', async () => {
  const started = await ending();
  await writeStatus(started, { phase: 'Terminating', termination });
  const response = await giveUp(started, 'second');
  const { metadata, status } = await stored(started);
  expect(status?.termination).toEqual({ ...termination, skip: ['second'] });
  const { uid, resourceVersion } = metadata;
  expect(response).toEqual({
    apiVersion: 'lifepod.io/v1',
    kind: 'DeferControl',
    metadata: { name: 'a', namespace: 'default', uid, resourceVersion },
    skip: 'second',
  });
  expect(await eventsOf(started)).toMatchObject([
    {
      involvedObject: { kind: 'Pod', name: 'a', uid, fieldPath: 'spec.deferContainers{second}' },
      type: 'Normal',
      reason: 'DeferContainerGivenUp',
      message: 'User "jane" gave up defer container "second"',
      count: 1,
    },
  ]);
});

test('giving up a defer container again changes nothing and creates no Event', async () => {
  const started = await ending();
  await writeStatus(started, { phase: 'Terminating', termination });
  await giveUp(started, 'second');
  const { metadata } = await stored(started);
  await giveUp(started, 'second');
  expect((await stored(started)).metadata.resourceVersion).toBe(metadata.resourceVersion);
  expect(await eventsOf(started)).toHaveLength(1);
});

test('giving up a defer container with dryRun changes nothing and creates no Event', async () => {
  const started = await ending();
  await writeStatus(started, { phase: 'Terminating', termination });
  await giveUp(started, 'second', { dryRun: true });
  expect((await stored(started)).status?.termination).toEqual(termination);
  expect(await eventsOf(started)).toEqual([]);
});

test('a status write from an older state keeps the defer containers that were given up', async () => {
  const started = await ending();
  await writeStatus(started, { phase: 'Terminating', termination });
  const seen = await stored(started);
  await giveUp(started, 'second');
  const moved = { ...termination, deadline: '2026-01-01T00:00:40.000000Z' };
  const { resourceVersion, ...metadata } = seen.metadata;
  const body = { ...seen, metadata, status: { ...seen.status, termination: moved } } as Pod;
  await started.registry.update(PODS, body, { subresource: 'status' });
  expect((await stored(started)).status?.termination).toEqual({ ...moved, skip: ['second'] });
  await writeStatus(started, { termination: { skip: null } });
  expect((await stored(started)).status?.termination?.skip).toEqual(['second']);
});

test.each<[string, string, object, number]>([
  ['a defer container before the node has recorded the termination', 'second', {}, 409],
  ['a defer container that does not exist', 'third', { termination }, 422],
])('giving up %s is refused', async (_, name, status, code) => {
  const started = await ending();
  await writeStatus(started, status);
  expect(await failure(giveUp(started, name))).toMatchObject({ code });
  expect(await eventsOf(started)).toEqual([]);
});

test('giving up a defer container of a Pod with another UID is refused with 409', async () => {
  const started = await ending();
  await writeStatus(started, { phase: 'Terminating', termination });
  const body = { apiVersion: 'lifepod.io/v1', kind: 'DeferControl', metadata: { name: 'a', namespace: 'default' } };
  const other = { ...body, metadata: { ...body.metadata, uid: 'another' }, skip: 'second' } as KubeObject;
  expect(await failure(started.registry.update(PODS, other, { subresource: 'defer' }))).toMatchObject({ code: 409 });
});

test('a defer container is given up even if its Event cannot be stored', async () => {
  const store = createMemoryStore();
  const started = await ending({
    store: {
      ...store,
      txn: (txn) =>
        txn.puts?.some(({ key }) => key.includes('/events/')) ? Promise.reject(new Error('full')) : store.txn(txn),
    },
  });
  await writeStatus(started, { phase: 'Terminating', termination });
  await giveUp(started, 'second');
  expect((await stored(started)).status?.termination?.skip).toEqual(['second']);
});
