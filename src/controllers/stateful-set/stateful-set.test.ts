import { describe, expect, test } from 'vitest';
import type {
  ControllerRevision,
  CoreV1Event,
  PersistentVolumeClaim,
  Pod,
  StatefulSet,
} from '../../api/generated/types.ts';
import {
  CONTROLLER_REVISIONS,
  EVENTS,
  NAMESPACES,
  PERSISTENT_VOLUME_CLAIMS,
  PODS,
  STATEFUL_SETS,
} from '../../api/resources.ts';
import { backend, controllerOptions, settled, timers, useRegistry } from '../controller-fixture.ts';
import { startStatefulSets } from './stateful-set.ts';
import { claimTemplate, imageOf, makeReady, removeClaim, statefulSet, templateWith } from './stateful-set-fixture.ts';

const MERGE = 'application/merge-patch+json';

useRegistry();

const create = async (spec: Parameters<typeof statefulSet>[0] = {}): Promise<void> => {
  await startStatefulSets(controllerOptions());
  await backend.create(STATEFUL_SETS, 'a', statefulSet(spec));
  await settled();
};
const change = async (spec: object): Promise<void> => {
  await backend.patch(STATEFUL_SETS, 'a', 'db', MERGE, { spec });
  await settled();
};
const db = (): StatefulSet => backend.objects(STATEFUL_SETS)[0] as StatefulSet;
const pods = (): Pod[] => (backend.objects(PODS) as Pod[]).sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
const podNamed = (name: string): Pod => pods().find(({ metadata }) => metadata.name === name) as Pod;
const claims = (): PersistentVolumeClaim[] => backend.objects(PERSISTENT_VOLUME_CLAIMS) as PersistentVolumeClaim[];
const claimNames = (): string[] =>
  claims()
    .map(({ metadata }) => metadata.name)
    .sort();
const revisions = (): ControllerRevision[] =>
  (backend.objects(CONTROLLER_REVISIONS) as ControllerRevision[]).sort((a, b) => a.revision - b.revision);
const events = (): string[] =>
  (backend.objects(EVENTS) as CoreV1Event[]).map(({ reason, message = '' }) => `${reason}: ${message}`);
const isDeleting = ({ metadata }: Pod): boolean => metadata.deletionTimestamp !== undefined;
/** Lists the Pods as NAME:IMAGE, with `-` while they are being deleted. */
const shown = (): string =>
  pods()
    .map((pod) => `${pod.metadata.name}:${imageOf(pod)}${isDeleting(pod) ? '-' : ''}`)
    .join(' ');
const ready = async (...names: string[]): Promise<void> => {
  for (const pod of pods()) {
    const isWaiting = pod.status?.phase === 'Pending' && !isDeleting(pod);
    if (isWaiting && (names.length === 0 || names.includes(pod.metadata.name)))
      await makeReady(backend, pod, timers.now());
  }
  await settled();
};
/** Acts as the nodes: removes the Pods that are being deleted. */
const ended = async (): Promise<void> => {
  for (const pod of pods()) if (isDeleting(pod)) await backend.remove(PODS, 'a', pod.metadata.name);
  await settled();
};
const complete = async (): Promise<void> => {
  for (let before = ''; before !== JSON.stringify(pods()); ) {
    before = JSON.stringify(pods());
    await ready();
    await ended();
  }
};
const reason = (pod: Pod) => pod.status?.conditions?.find(({ type }) => type === 'DeletionReason');

describe('a StatefulSet', () => {
  test('creates its Pods in order, each once the one before is ready', async () => {
    await create({ replicas: 3 });
    expect(shown()).toBe('db-0:v1');
    await ready();
    expect(shown()).toBe('db-0:v1 db-1:v1');
    await ready();
    await ready();
    expect(shown()).toBe('db-0:v1 db-1:v1 db-2:v1');
    const [revision] = revisions();
    expect(db().status).toEqual({
      observedGeneration: 1,
      replicas: 3,
      readyReplicas: 3,
      availableReplicas: 3,
      currentReplicas: 3,
      updatedReplicas: 3,
      currentRevision: revision?.metadata.name,
      updateRevision: revision?.metadata.name,
      collisionCount: 0,
    });
    expect(events()).toContain('SuccessfulCreate: create Pod db-0 in StatefulSet db successful');
  });

  test('gives its Pods their labels, host name, subdomain and owner', async () => {
    await create();
    const [revision] = revisions();
    expect(podNamed('db-0')).toMatchObject({
      metadata: {
        generateName: 'db-',
        labels: {
          app: 'db',
          'statefulset.kubernetes.io/pod-name': 'db-0',
          'apps.kubernetes.io/pod-index': '0',
          'controller-revision-hash': revision?.metadata.name,
        },
        ownerReferences: [{ kind: 'StatefulSet', name: 'db', controller: true, blockOwnerDeletion: true }],
      },
      spec: { hostname: 'db-0', subdomain: 'dbs' },
    });
    expect(revision).toMatchObject({
      revision: 1,
      data: { spec: { template: { $patch: 'replace' } } },
      metadata: { labels: { app: 'db', 'controller.kubernetes.io/hash': revision?.metadata.name.slice('db-'.length) } },
    });
  });

  test('creates all Pods at once with the policy Parallel', async () => {
    await create({ replicas: 3, podManagementPolicy: 'Parallel' });
    expect(shown()).toBe('db-0:v1 db-1:v1 db-2:v1');
    await change({ replicas: 1 });
    expect(shown()).toBe('db-0:v1');
  });

  test('starts at its first ordinal, and moves Pods when it changes', async () => {
    await create({ replicas: 2, ordinals: { start: 5 } });
    await complete();
    expect(shown()).toBe('db-5:v1 db-6:v1');
    await change({ ordinals: { start: 6 } });
    await complete();
    expect(shown()).toBe('db-6:v1 db-7:v1');
  });

  test('is scaled down from the highest ordinal, one Pod after another', async () => {
    await create({ replicas: 3 });
    await complete();
    await change({ replicas: 0 });
    expect(shown()).toBe('db-0:v1 db-1:v1 db-2:v1-');
    await ended();
    expect(shown()).toBe('db-0:v1 db-1:v1-');
    await ended();
    expect(shown()).toBe('db-0:v1-');
    await ended();
    expect(db().status).toMatchObject({ replicas: 0, availableReplicas: 0 });
    expect(events()).toContain('SuccessfulDelete: delete Pod db-2 in StatefulSet db successful');
  });

  test('waits for minReadySeconds before the next Pod', async () => {
    await create({ replicas: 2, minReadySeconds: 10 });
    await ready();
    expect(shown()).toBe('db-0:v1');
    expect(db().status).toMatchObject({ readyReplicas: 1, availableReplicas: 0 });
    timers.advance(10_000);
    await settled();
    expect(shown()).toBe('db-0:v1 db-1:v1');
    expect(db().status).toMatchObject({ availableReplicas: 1 });
  });

  test.each(['Failed', 'Succeeded'])('replaces a Pod with the phase %s once it is gone', async (phase) => {
    await create({ replicas: 2 });
    await complete();
    const { uid } = podNamed('db-0').metadata;
    await backend.setStatus(PODS, 'a', 'db-0', { phase });
    await settled();
    expect(podNamed('db-0').metadata.uid).not.toBe(uid);
    await complete();
    expect(shown()).toBe('db-0:v1 db-1:v1');
  });

  test('adopts a Pod with the name of a member, and no other', async () => {
    const orphan = (name: string): Pod => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'a', labels: { app: 'db' } },
      spec: { containers: [{ name: 'app', image: 'own' }] },
    });
    for (const name of ['db-0', 'db-00', 'other']) await backend.create(PODS, 'a', orphan(name));
    await create({ updateStrategy: { type: 'OnDelete' } });
    await complete();
    const adopted = pods().filter(({ metadata }) => metadata.ownerReferences !== undefined);
    expect(adopted.map(({ metadata }) => metadata.name)).toEqual(['db-0']);
    expect(adopted[0]?.metadata.labels).toMatchObject({ 'statefulset.kubernetes.io/pod-name': 'db-0' });
  });

  test('releases a Pod whose labels no longer match, and replaces it once its name is free', async () => {
    await create();
    await complete();
    await backend.patch(PODS, 'a', 'db-0', MERGE, { metadata: { labels: { app: 'other' } } });
    await settled();
    expect(podNamed('db-0').metadata.ownerReferences ?? []).toEqual([]);
    await backend.remove(PODS, 'a', 'db-0');
    await settled();
    timers.advance(120_000);
    await settled();
    expect(podNamed('db-0').metadata.labels).toMatchObject({ app: 'db' });
  });

  test('that does not change causes no writes', async () => {
    await create({ replicas: 2, volumeClaimTemplates: [claimTemplate('data')] });
    await complete();
    const before = backend.calls.length;
    await backend.patch(STATEFUL_SETS, 'a', 'db', MERGE, { metadata: { labels: { a: 'b' } } });
    await settled();
    expect(backend.calls.slice(before).filter((call) => /^(create|update|delete)/.test(call))).toEqual([]);
  });
});

test('a StatefulSet in a namespace that is being deleted creates nothing, and tries no more', async () => {
  await create({ volumeClaimTemplates: [claimTemplate('data')] });
  await backend.delete(NAMESPACES, undefined, 'a');
  await removeClaim(backend, 'data-db-0');
  await settled();
  expect(claims()).toEqual([]);
  const before = backend.calls.length;
  timers.advance(600_000);
  await settled();
  expect(backend.calls.slice(before)).toEqual([]);
});

describe('the claims of a StatefulSet', () => {
  const withClaims = { replicas: 2, volumeClaimTemplates: [claimTemplate('data')] };
  const ownersOf = (name: string): string[] =>
    (claims().find(({ metadata }) => metadata.name === name)?.metadata.ownerReferences ?? []).map(
      (owner) => `${owner.kind}/${owner.name}`,
    );

  test('exist before their Pods, and remain when it is scaled down', async () => {
    await create(withClaims);
    await complete();
    expect(claimNames()).toEqual(['data-db-0', 'data-db-1']);
    expect(claims()[0]?.metadata.labels).toEqual({ app: 'db' });
    expect(podNamed('db-1').spec?.volumes?.[0]).toMatchObject({
      name: 'data',
      persistentVolumeClaim: { claimName: 'data-db-1' },
    });
    expect(events()).toContain('SuccessfulCreate: create Claim data-db-0 Pod db-0 in StatefulSet db success');
    await change({ replicas: 0 });
    await complete();
    expect(claimNames()).toEqual(['data-db-0', 'data-db-1']);
    expect(ownersOf('data-db-1')).toEqual([]);
  });

  test('are created again for a Pod that waits for them', async () => {
    await create(withClaims);
    const before = claims()[0]?.metadata.uid;
    await removeClaim(backend, 'data-db-0');
    await settled();
    expect(claimNames()).toEqual(['data-db-0']);
    expect(claims()[0]?.metadata.uid).not.toBe(before);
  });

  test('belong to the StatefulSet with whenDeleted Delete, until the policy changes', async () => {
    await create({
      ...withClaims,
      persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Delete', whenScaled: 'Retain' },
    });
    await complete();
    expect(ownersOf('data-db-1')).toEqual(['StatefulSet/db']);
    await change({ persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain' } });
    expect([ownersOf('data-db-0'), ownersOf('data-db-1')]).toEqual([[], []]);
  });

  test('belong to the Pod that is scaled down with whenScaled Delete, and the next Pod waits until they are gone', async () => {
    await create({
      ...withClaims,
      persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Delete', whenScaled: 'Delete' },
    });
    await complete();
    expect(ownersOf('data-db-1')).toEqual(['StatefulSet/db']);
    const { uid } = podNamed('db-1').metadata;
    await change({ replicas: 1 });
    expect(ownersOf('data-db-1')).toEqual(['Pod/db-1']);
    expect(ownersOf('data-db-0')).toEqual(['StatefulSet/db']);
    await change({ replicas: 2 });
    await complete();
    expect(shown()).toBe('db-0:v1');
    // Act as the garbage collector, which deletes the claim with its Pod.
    await removeClaim(backend, 'data-db-1');
    await settled();
    await complete();
    expect(podNamed('db-1').metadata.uid).not.toBe(uid);
    expect(ownersOf('data-db-1')).toEqual(['StatefulSet/db']);
  });

  test('that are being deleted delay the Pod, with an Event', async () => {
    const claim = {
      ...claimTemplate('data-db-0'),
      metadata: { name: 'data-db-0', namespace: 'a', finalizers: ['a.b/c'] },
    };
    await backend.create(PERSISTENT_VOLUME_CLAIMS, 'a', claim);
    await backend.remove(PERSISTENT_VOLUME_CLAIMS, 'a', 'data-db-0');
    await create(withClaims);
    expect(shown()).toBe('');
    expect(events()).toContain(
      'FailedCreate: create Pod db-0 in StatefulSet db failed error: pvc data-db-0 is being deleted',
    );
    await backend.patch(PERSISTENT_VOLUME_CLAIMS, 'a', 'data-db-0', MERGE, { metadata: { finalizers: null } });
    await settled();
    expect(shown()).toBe('db-0:v1');
  });

  test('keep the owner that another controller gave them, with an Event', async () => {
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'u', controller: true };
    const metadata = { name: 'data-db-0', namespace: 'a', ownerReferences: [owner] };
    await backend.create(PERSISTENT_VOLUME_CLAIMS, 'a', { ...claimTemplate('data-db-0'), metadata });
    await create({
      ...withClaims,
      persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Delete', whenScaled: 'Retain' },
    });
    await complete();
    expect(ownersOf('data-db-0')).toEqual(['ConfigMap/x']);
    expect(events().some((event) => event.startsWith('ConflictingController: PersistentVolumeClaim data-db-0'))).toBe(
      true,
    );
  });
});

describe('an update of a StatefulSet', () => {
  test('replaces the Pods from the highest ordinal, and waits until each successor is ready', async () => {
    await create({ replicas: 3 });
    await complete();
    await change({ template: templateWith('v2') });
    expect(shown()).toBe('db-0:v1 db-1:v1 db-2:v1-');
    await ended();
    expect(shown()).toBe('db-0:v1 db-1:v1 db-2:v2');
    const [old, updated] = revisions().map(({ metadata }) => metadata.name);
    expect(db().status).toMatchObject({
      currentReplicas: 2,
      updatedReplicas: 1,
      currentRevision: old,
      updateRevision: updated,
    });
    await ready();
    expect(shown()).toBe('db-0:v1 db-1:v1- db-2:v2');
    await complete();
    expect(shown()).toBe('db-0:v2 db-1:v2 db-2:v2');
    expect(db().status).toMatchObject({ currentReplicas: 3, currentRevision: updated, updateRevision: updated });
  });

  test('leaves the Pods below the partition, also when they are replaced, and rolls back', async () => {
    await create({ replicas: 3, updateStrategy: { rollingUpdate: { partition: 2 } } });
    await complete();
    await change({ template: templateWith('v2') });
    await complete();
    expect(shown()).toBe('db-0:v1 db-1:v1 db-2:v2');
    await backend.remove(PODS, 'a', 'db-1');
    await settled();
    await complete();
    expect(shown()).toBe('db-0:v1 db-1:v1 db-2:v2');
    await change({ updateStrategy: { rollingUpdate: { partition: 0 } } });
    await complete();
    expect(shown()).toBe('db-0:v2 db-1:v2 db-2:v2');
    const [first] = revisions();
    await backend.patch(STATEFUL_SETS, 'a', 'db', 'application/strategic-merge-patch+json', first?.data);
    await settled();
    await complete();
    expect(shown()).toBe('db-0:v1 db-1:v1 db-2:v1');
    expect(revisions().map(({ revision }) => revision)).toEqual([2, 3]);
    expect(revisions()[1]?.metadata.uid).toBe(first?.metadata.uid);
  });

  test('replaces as many Pods at once as maxUnavailable allows', async () => {
    const updateStrategy = { rollingUpdate: { maxUnavailable: 2 } };
    await create({ replicas: 4, podManagementPolicy: 'Parallel', updateStrategy });
    await complete();
    await change({ template: templateWith('v2') });
    expect(shown()).toBe('db-0:v1 db-1:v1 db-2:v1- db-3:v1-');
    await ended();
    await ready('db-3');
    expect(shown()).toBe('db-0:v1 db-1:v1- db-2:v2 db-3:v2');
    await complete();
    expect(shown()).toBe('db-0:v2 db-1:v2 db-2:v2 db-3:v2');
  });

  test('waits for users to delete the Pods with the strategy OnDelete', async () => {
    await create({ replicas: 2, updateStrategy: { type: 'OnDelete' } });
    await complete();
    await change({ template: templateWith('v2') });
    expect(shown()).toBe('db-0:v1 db-1:v1');
    await backend.remove(PODS, 'a', 'db-0');
    await settled();
    await complete();
    expect(shown()).toBe('db-0:v2 db-1:v1');
  });

  test('keeps as many unused revisions as the limit of the history', async () => {
    await create({ replicas: 1, revisionHistoryLimit: 1 });
    for (const image of ['v2', 'v3', 'v4']) {
      await complete();
      await change({ template: templateWith(image) });
    }
    await complete();
    expect(revisions().map(({ revision }) => revision)).toEqual([3, 4]);
  });
});

describe('a Pod with defer containers', () => {
  const deferring = (image: string) =>
    templateWith(image, { deferContainers: [{ name: 'bye', image: 'x' }], terminationGracePeriodSeconds: 30 });

  test('gets the reason ScaledDown outside of the range, and Replaced on an update', async () => {
    await create({ replicas: 2, template: deferring('v1') });
    await complete();
    await change({ replicas: 1 });
    expect(reason(podNamed('db-1'))).toMatchObject({ status: 'True', reason: 'ScaledDown' });
    await ended();
    await change({ template: deferring('v2') });
    expect(reason(podNamed('db-0'))).toMatchObject({ status: 'True', reason: 'Replaced' });
  });

  test('has no successor before its list has ended and the Pod is gone', async () => {
    await create({ replicas: 2, podManagementPolicy: 'Parallel', template: deferring('v1') });
    await complete();
    const { uid } = podNamed('db-0').metadata;
    await backend.delete(PODS, 'a', 'db-0');
    await backend.setStatus(PODS, 'a', 'db-0', { ...podNamed('db-0').status, phase: 'Terminating' });
    await settled();
    expect(podNamed('db-0').metadata.uid).toBe(uid);
    expect(db().status).toMatchObject({ replicas: 2, readyReplicas: 1 });
    await ended();
    expect(podNamed('db-0').metadata.uid).not.toBe(uid);
  });

  test('that is marked but no longer deleted is unmarked', async () => {
    await create({ template: deferring('v1') });
    await complete();
    const pod = podNamed('db-0');
    const mark = { type: 'DeletionReason', status: 'True', reason: 'ScaledDown' };
    await backend.setStatus(PODS, 'a', 'db-0', {
      ...pod.status,
      conditions: [...(pod.status?.conditions ?? []), mark],
    });
    await settled();
    expect(reason(podNamed('db-0'))).toMatchObject({ status: 'False' });
    expect(isDeleting(podNamed('db-0'))).toBe(false);
  });
});
