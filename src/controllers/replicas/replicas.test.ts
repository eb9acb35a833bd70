import { describe, expect, test } from 'vitest';
import type { CoreV1Event, Pod, PodCondition, ReplicationController } from '../../api/generated/types.ts';
import { EVENTS, NAMESPACES, PODS, REPLICA_SETS, REPLICATION_CONTROLLERS } from '../../api/resources.ts';
import { clientOf } from '../../client/typed-client.ts';
import type { ResourceRef } from '../../machinery/meta.ts';
import { forbidden, objectModified, serviceUnavailable } from '../../machinery/status.ts';
import { formatTime } from '../../machinery/time.ts';
import { backend, controllerOptions, settled, timers, useRegistry } from '../controller-fixture.ts';
import { controllerOf, controllerReference } from '../ownership/owner.ts';
import { REVISION } from './reconcile.ts';
import { REPLICA_SET, type ReplicaOwner } from './replica-owner.ts';
import { startReplicaSets, startReplicationControllers } from './replicas.ts';
import { replicaSet, template } from './replicas-fixture.ts';

useRegistry();

const start = async (begin = startReplicaSets): Promise<void> => {
  await begin(controllerOptions());
  await settled();
};
const pods = (): Pod[] => backend.objects(PODS) as Pod[];
const active = (): Pod[] => pods().filter(({ metadata }) => metadata.deletionTimestamp === undefined);
const owned = (): Pod[] => active().filter((pod) => controllerOf(pod) !== undefined);
const owner = (ref: ResourceRef = REPLICA_SETS, name = 'web'): ReplicaOwner =>
  backend.objects(ref).find(({ metadata }) => metadata.name === name) as ReplicaOwner;
const events = (): string[] =>
  (backend.objects(EVENTS) as CoreV1Event[]).map(({ reason, message = '' }) => `${reason}: ${message}`);
const writes = (): string[] =>
  backend.calls.filter((call) => /^(create|update|patch|delete) (pods|replica)/.test(call));

const set = async (spec: object, metadata: object = {}): Promise<void> => {
  await backend.set(REPLICA_SETS, { ...replicaSet(spec), metadata: { ...replicaSet().metadata, ...metadata } });
  await settled();
};
const put = async (name: string, metadata: object = {}, spec: object = {}): Promise<void> => {
  const containers = [{ name: 'app', image: 'x' }];
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'a', ...metadata } };
  await backend.set<Pod>(PODS, { ...pod, spec: { containers, ...spec } });
  await settled();
};
const label = async (name: string, app: string): Promise<void> => {
  const change = { metadata: { labels: { app } } };
  await clientOf(backend).resource(PODS).patch(name, 'a', 'application/merge-patch+json', change);
  await settled();
};
const setReady = async ({ metadata }: Pod, isReady = true): Promise<void> => {
  const status: PodCondition['status'] = isReady ? 'True' : 'False';
  const ready = { type: 'Ready', status, lastTransitionTime: formatTime(timers.now()) };
  await backend.setStatus(PODS, 'a', metadata.name, { phase: 'Running', conditions: [ready] });
  await settled();
};

describe.each([
  ['ReplicationController', 'v1', REPLICATION_CONTROLLERS, startReplicationControllers],
  ['ReplicaSet', 'apps/v1', REPLICA_SETS, startReplicaSets],
])('%s', (kind, apiVersion, ref, begin) => {
  const write = async (replicas: number): Promise<void> => {
    const { spec, metadata } = replicaSet({ replicas });
    const selector = kind === 'ReplicaSet' ? spec?.selector : spec?.selector.matchLabels;
    await backend.set(ref, { apiVersion, kind, metadata, spec: { ...spec, selector } } as ReplicationController);
    await settled();
  };

  test('Pods are created from the template, counted in the status, and deleted when they are too many', async () => {
    await start(begin);
    await write(3);
    expect(pods()).toHaveLength(3);
    const { uid } = owner(ref).metadata;
    for (const { metadata, spec } of pods()) {
      expect(metadata.name).toMatch(/^web-[a-z0-9]{5}$/);
      expect(metadata.labels).toEqual({ app: 'web' });
      expect(metadata.ownerReferences).toEqual([
        { apiVersion, kind, name: 'web', uid, controller: true, blockOwnerDeletion: true },
      ]);
      expect(spec?.containers[0]?.image).toBe('x');
    }
    for (const pod of pods().slice(0, 2)) await setReady(pod);
    const observed = { replicas: 3, fullyLabeledReplicas: 3, observedGeneration: 1 };
    expect(owner(ref).status).toEqual({ ...observed, readyReplicas: 2, availableReplicas: 2 });

    const [first, second, last] = pods().map(({ metadata }) => metadata.name);
    await write(2);
    expect(pods().map(({ metadata }) => metadata.name)).toEqual([first, second]);
    expect(owner(ref).status).toMatchObject({ replicas: 2, readyReplicas: 2, observedGeneration: 2 });
    const created = [first, second, last].map((name) => `SuccessfulCreate: Created pod: ${name}`);
    expect(events().sort()).toEqual([...created, `SuccessfulDelete: Deleted pod: ${last}`].sort());
    const about = (backend.objects(EVENTS) as CoreV1Event[]).map(({ involvedObject }) => involvedObject.kind);
    expect(new Set(about)).toEqual(new Set([kind]));
  });
});

test('a Pod that is being deleted or has ended is replaced', async () => {
  await start();
  await set({ replicas: 2, template: { ...template, spec: { ...template.spec, nodeName: 'n' } } });
  const [first, second] = pods();
  await clientOf(backend)
    .resource(PODS)
    .delete(first?.metadata.name ?? '', 'a');
  await settled();
  expect([pods().length, active().length]).toEqual([3, 2]);
  await backend.setStatus(PODS, 'a', second?.metadata.name ?? '', { phase: 'Failed' });
  await settled();
  expect([pods().length, active().length]).toEqual([4, 3]);
  expect(owner().status?.replicas).toBe(2);
});

test('a reconcile that changes nothing writes nothing', async () => {
  await start();
  await set({ replicas: 2 });
  const before = writes().length;
  await set({ replicas: 2 }, { annotations: { changed: 'yes' } });
  await put('stranger', { labels: { app: 'other' } });
  expect(writes().slice(before)).toEqual([]);
});

test('a matching Pod without a controller is adopted instead of a creation, and released when its labels change', async () => {
  await put('free', { labels: { app: 'web' } });
  await put('ended', { labels: { app: 'web' } });
  await backend.setStatus(PODS, 'a', 'ended', { phase: 'Succeeded' });
  await start();
  await set({ replicas: 1 });
  expect(owned().map(({ metadata }) => metadata.name)).toEqual(['free']);
  expect(owner().status?.replicas).toBe(1);

  await label('free', 'debug');
  const released = pods().find(({ metadata }) => metadata.name === 'free');
  expect(released?.metadata.ownerReferences ?? []).toEqual([]);
  expect(owned()).toHaveLength(1);

  // When the labels match again, the owner adopts the Pod and has one Pod too many.
  await label('free', 'web');
  expect(owned()).toHaveLength(1);
});

test('Pods of another controller and of an earlier owner with the same name do not count', async () => {
  const earlier = { ...replicaSet(), metadata: { ...replicaSet().metadata, uid: 'earlier' } };
  const ownerReferences = [controllerReference(earlier, REPLICA_SET.owner)];
  await put('others', { labels: { app: 'web' }, ownerReferences });
  await start();
  await set({ replicas: 1 });
  expect(owned()).toHaveLength(2);
  expect(owner().status?.replicas).toBe(1);
});

test('a Pod counts as available once it has been ready for minReadySeconds', async () => {
  await start();
  await set({ replicas: 1, minReadySeconds: 10 });
  await setReady(pods()[0] as Pod);
  expect(owner().status).toMatchObject({ readyReplicas: 1 });
  expect(owner().status?.availableReplicas).toBeUndefined();
  timers.advance(9_999);
  await settled();
  expect(owner().status?.availableReplicas).toBeUndefined();
  timers.advance(1);
  await settled();
  expect(owner().status?.availableReplicas).toBe(1);
});

/** Makes two calls fail. The first failure changes the status, which queues the owner again. The second failure starts the back-off. */
const failTwice = (call: string, error: Error): void => {
  for (const _ of [1, 2]) backend.failNext(call, error);
};

test('a failed creation ends the slow start, is reported, and is retried', async () => {
  await start();
  const error = forbidden(PODS, 'web', 'no more Pods');
  failTwice('create pods', error);
  await set({ replicas: 10 });
  expect(backend.calls.filter((call) => call.startsWith('create pods'))).toHaveLength(2);
  expect(owner().status?.conditions).toEqual([
    {
      type: 'ReplicaFailure',
      status: 'True',
      lastTransitionTime: '2026-01-31T00:00:00Z',
      reason: 'FailedCreate',
      message: error.message,
    },
  ]);
  expect(events()).toEqual([`FailedCreate: Error creating: ${error.message}`]);
  timers.advance(60_000);
  await settled();
  expect(pods()).toHaveLength(10);
  expect(owner().status?.conditions).toBeUndefined();
});

test('in a namespace that is being deleted, rejected creations are neither reported nor retried', async () => {
  await start();
  await set({ replicas: 0 });
  await backend.remove(NAMESPACES, undefined, 'a');
  await set({ replicas: 2 });
  const creates = (): number => backend.calls.filter((call) => call.startsWith('create pods')).length;
  // Two creates for the change of the owner, and two for the change of its status.
  expect(creates()).toBe(4);
  timers.advance(60_000);
  await settled();
  expect(creates()).toBe(4);
  expect(events()).toEqual([]);
  expect(owner().status).toEqual({ replicas: 0, observedGeneration: 2 });
});

test('a failed deletion is reported, and is retried', async () => {
  await start();
  await set({ replicas: 1 });
  failTwice('delete pods', serviceUnavailable('not now'));
  await set({ replicas: 0 });
  expect(pods()).toHaveLength(1);
  expect(owner().status?.conditions).toMatchObject([{ reason: 'FailedDelete', message: 'not now' }]);
  expect(events()).toContain('FailedDelete: Error deleting: not now');
  timers.advance(60_000);
  await settled();
  expect(pods()).toHaveLength(0);
  expect(owner().status).toEqual({ replicas: 0, observedGeneration: 2 });
});

test('an owner that is being deleted only gets a new status', async () => {
  await start();
  await set({ replicas: 2 }, { finalizers: ['example.com/wait'] });
  await backend.remove(REPLICA_SETS, 'a', 'web');
  await put('free', { labels: { app: 'web' } });
  const before = writes().length;
  await backend.remove(PODS, 'a', owned()[0]?.metadata.name ?? '');
  await settled();
  expect(owned()).toHaveLength(1);
  expect(owner().status).toMatchObject({ replicas: 1 });
  expect(writes().slice(before)).toEqual(['update replicasets/status a/web']);
});

const deferring = { ...template.spec, nodeName: 'n', deferContainers: [{ name: 'bye', image: 'x' }] };
const reasons = (): (string | undefined)[] =>
  pods().map(({ status }) => status?.conditions?.find(({ type }) => type === 'DeletionReason')?.reason);

test.each([
  ['is scaled down', '2', 'ScaledDown'],
  ['has been replaced by a newer revision', '1', 'Replaced'],
])(
  'a Pod with defer containers gets the reason of its deletion when its ReplicaSet %s',
  async (_, revision, reason) => {
    const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', resource: REPLICA_SETS };
    const controller = { apiVersion: 'v1', kind: 'X', metadata: { name: 'd', namespace: 'a', uid: 'd' } };
    const ownerReferences = [controllerReference(controller, deployment)];
    const selector = { matchLabels: { app: 'other' } };
    const labels = { metadata: { name: '', labels: { app: 'other' } }, spec: template.spec };
    await start();
    await set(
      { replicas: 0, selector, template: labels },
      { name: 'other', ownerReferences, annotations: { [REVISION]: '1' } },
    );
    const annotations = { [REVISION]: revision === '1' ? '0' : revision };
    await set({ replicas: 1, template: { ...template, spec: deferring } }, { ownerReferences, annotations });
    await set({ replicas: 0, template: { ...template, spec: deferring } }, { ownerReferences, annotations });
    expect(active()).toEqual([]);
    expect(reasons()).toEqual([reason]);
  },
);

test('the reason of a deletion that failed is withdrawn if the Pod is kept', async () => {
  const withDefer = { template: { ...template, spec: deferring } };
  await start();
  await set({ replicas: 1, ...withDefer });
  failTwice('delete pods', serviceUnavailable('not now'));
  await set({ replicas: 0, ...withDefer });
  expect(reasons()).toEqual(['ScaledDown']);
  await set({ replicas: 1, ...withDefer });
  expect(active()).toHaveLength(1);
  expect(pods()[0]?.status?.conditions).toMatchObject([{ type: 'DeletionReason', status: 'False' }]);
});

test('a status that conflicts with a later change is written afterwards', async () => {
  await start();
  backend.failNext('update replicasets/status', objectModified(REPLICA_SETS, 'web'));
  await set({ replicas: 1 });
  await setReady(pods()[0] as Pod);
  expect(owner().status).toMatchObject({ replicas: 1, readyReplicas: 1 });
});

test('among ready Pods, those on a node with more Pods of the same Deployment are deleted first', async () => {
  const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', resource: REPLICA_SETS };
  const controller = { apiVersion: 'v1', kind: 'X', metadata: { name: 'd', namespace: 'a', uid: 'd' } };
  const ownerReferences = [controllerReference(controller, deployment)];
  const ownPods = async (name: string, nodes: readonly string[]): Promise<void> => {
    const reference = controllerReference(owner(REPLICA_SETS, name), REPLICA_SET.owner);
    for (const [index, nodeName] of nodes.entries()) {
      const metadata = { labels: { app: name }, ownerReferences: [reference] };
      await put(`${name}-${index}`, metadata, { nodeName });
      await setReady(pods().find((pod) => pod.metadata.name === `${name}-${index}`) as Pod);
    }
  };
  for (const name of ['web', 'old']) {
    const selector = { matchLabels: { app: name } };
    const labels = { metadata: { name: '', labels: { app: name } }, spec: template.spec };
    await set({ replicas: name === 'web' ? 1 : 2, selector, template: labels }, { name, ownerReferences });
  }
  await ownPods('old', ['n2', 'n2']);
  await ownPods('web', ['n1', 'n2']);
  await start();
  expect(active().map(({ metadata }) => metadata.name)).toEqual(['old-0', 'old-1', 'web-0']);
});
