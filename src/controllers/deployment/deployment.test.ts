import { describe, expect, test } from 'vitest';
import type { CoreV1Event, Deployment, Pod, ReplicaSet } from '../../api/generated/types.ts';
import { DEPLOYMENTS, EVENTS, PODS, REPLICA_SETS } from '../../api/resources.ts';
import { forbidden, objectModified } from '../../machinery/status.ts';
import { formatTime } from '../../machinery/time.ts';
import { backend, controllerOptions, settled, stopControllers, timers, useRegistry } from '../controller-fixture.ts';
import { startReplicaSets } from '../replicas/replicas.ts';
import { startDeployments } from './deployment.ts';
import { deployment, rolling, templateWith } from './deployment-fixture.ts';
import { REVISION } from './revisions.ts';
import { sizeOf } from './rollout.ts';

useRegistry();

async function start(): Promise<void> {
  const options = controllerOptions();
  await Promise.all([startDeployments(options), startReplicaSets(options)]);
  await settled();
}
const change = async (spec: object, metadata: object = {}): Promise<void> => {
  const patch = { metadata, spec };
  await backend.patch(DEPLOYMENTS, 'a', 'web', 'application/merge-patch+json', patch);
  await settled();
};
const create = async (spec: object = {}, metadata: object = {}): Promise<void> => {
  const object = deployment(spec, metadata);
  const { uid: _, ...own } = object.metadata;
  await backend.create(DEPLOYMENTS, 'a', { ...object, metadata: own } as Deployment);
  await settled();
};
const web = (): Deployment => backend.objects(DEPLOYMENTS)[0] as Deployment;
const sets = (): ReplicaSet[] =>
  (backend.objects(REPLICA_SETS) as ReplicaSet[]).sort(
    (a, b) => Number(a.metadata.annotations?.[REVISION]) - Number(b.metadata.annotations?.[REVISION]),
  );
const sizes = (): number[] => sets().map(sizeOf);
const pods = (): Pod[] => backend.objects(PODS) as Pod[];
const events = (): string[] =>
  (backend.objects(EVENTS) as CoreV1Event[])
    .filter(({ involvedObject }) => involvedObject.kind === 'Deployment')
    .map(({ reason, message = '' }) => `${reason}: ${message}`);
const condition = (type: string) => web().status?.conditions?.find((each) => each.type === type);

async function ready(image: string): Promise<void> {
  for (const { metadata, spec, status } of pods()) {
    if (spec?.containers[0]?.image !== image || status?.phase === 'Running') continue;
    const lastTransitionTime = formatTime(timers.now());
    const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime }];
    await backend.setStatus(PODS, 'a', metadata.name, { phase: 'Running', conditions });
  }
  await settled();
}

describe('a rolling update', () => {
  test('creates a ReplicaSet, replaces the Pods step by step, and keeps the old ReplicaSet', async () => {
    await start();
    await create();
    expect(sizes()).toEqual([4]);
    expect(condition('Available')).toMatchObject({ status: 'False', reason: 'MinimumReplicasUnavailable' });
    expect(condition('Progressing')).toMatchObject({ status: 'True', reason: 'ReplicaSetUpdated' });
    await ready('v1');
    const [first] = sets();
    expect(condition('Progressing')).toMatchObject({
      reason: 'NewReplicaSetAvailable',
      message: `ReplicaSet "${first?.metadata.name}" has successfully progressed.`,
    });
    expect(web().status).toMatchObject({ replicas: 4, updatedReplicas: 4, readyReplicas: 4, availableReplicas: 4 });

    await change({ template: templateWith('v2') });
    expect(sizes()).toEqual([3, 2]);
    await ready('v2');
    expect(sizes()).toEqual([1, 4]);
    await ready('v2');
    expect(sizes()).toEqual([0, 4]);
    expect(web().metadata.annotations?.[REVISION]).toBe('2');
    const second = sets()[1]?.metadata.name;
    expect(events().slice(0, 3)).toEqual([
      `ScalingReplicaSet: Scaled up replica set ${first?.metadata.name} from 0 to 4`,
      `ScalingReplicaSet: Scaled up replica set ${second} from 0 to 1`,
      `ScalingReplicaSet: Scaled down replica set ${first?.metadata.name} from 4 to 3`,
    ]);
    expect(events().at(-1)).toBe(`ScalingReplicaSet: Scaled down replica set ${first?.metadata.name} from 1 to 0`);
  });

  test('is undone by the earlier template, whose ReplicaSet gets the next revision', async () => {
    await start();
    await create();
    await ready('v1');
    await change({ template: templateWith('v2') });
    await ready('v2');
    await ready('v2');
    const [first] = sets();
    await change({ template: templateWith('v1') });
    expect(sets().map(({ metadata }) => metadata.annotations?.[REVISION])).toEqual(['2', '3']);
    expect(sets()[1]?.metadata).toMatchObject({
      uid: first?.metadata.uid,
      annotations: { 'deployment.kubernetes.io/revision-history': '1' },
    });
  });

  test('rolls over to a third template before the second is complete', async () => {
    await start();
    await create();
    await ready('v1');
    await change({ template: templateWith('v2') });
    expect(sizes()).toEqual([3, 2]);
    await change({ template: templateWith('v3') });
    // The Pods of v2 are not available, so the controller removes them first.
    expect(sizes()).toEqual([3, 0, 2]);
  });

  test('stops while the Deployment is paused, and continues afterwards', async () => {
    await start();
    await create();
    await ready('v1');
    await change({ paused: true });
    expect(condition('Progressing')).toMatchObject({ status: 'Unknown', reason: 'DeploymentPaused' });
    await change({ template: templateWith('v2') });
    expect(sizes()).toEqual([4]);
    await change({ replicas: 5 });
    expect(sizes()).toEqual([5]);
    await change({ paused: null });
    expect(sizes()).toEqual([4, 2]);
  });

  test('divides new replicas in proportion while it runs', async () => {
    await start();
    await create({ replicas: 10, strategy: rolling(3, 2) });
    await ready('v1');
    await change({ template: templateWith('v2') });
    expect(sizes()).toEqual([8, 5]);
    await change({ replicas: 15 });
    // The example of "Proportional scaling" in the Kubernetes page "Deployments".
    expect(sizes()).toEqual([11, 7]);
  });

  test('without progress is reported once its deadline has passed', async () => {
    await start();
    await create({ progressDeadlineSeconds: 60 });
    timers.advance(59_000);
    await settled();
    expect(condition('Progressing')).toMatchObject({ status: 'True' });
    timers.advance(2_000);
    await settled();
    expect(condition('Progressing')).toMatchObject({
      status: 'False',
      reason: 'ProgressDeadlineExceeded',
      message: `ReplicaSet "${sets()[0]?.metadata.name}" has timed out progressing.`,
    });
    await ready('v1');
    expect(condition('Progressing')).toMatchObject({ status: 'True', reason: 'NewReplicaSetAvailable' });
  });
});

test('the strategy Recreate creates no new Pod before the last old one is gone', async () => {
  await start();
  await create({ replicas: 2, strategy: { type: 'Recreate' } });
  for (const { metadata } of pods())
    await backend.patch(PODS, 'a', metadata.name, 'application/merge-patch+json', {
      metadata: { finalizers: ['a.b/c'] },
    });
  await settled();
  await change({ template: templateWith('v2') });
  expect(sizes()).toEqual([0]);
  expect(pods().every(({ metadata }) => metadata.deletionTimestamp !== undefined)).toBe(true);
  const [first, second] = pods();
  const release = async (pod: Pod | undefined): Promise<void> => {
    const none = { metadata: { finalizers: null } };
    await backend.patch(PODS, 'a', pod?.metadata.name ?? '', 'application/merge-patch+json', none);
    await settled();
  };
  await release(first);
  expect(sizes()).toEqual([0]);
  await release(second);
  expect(sizes()).toEqual([0, 2]);
});

test('old ReplicaSets above the revisionHistoryLimit are deleted once the rollout is complete', async () => {
  await start();
  await create({ revisionHistoryLimit: 1 });
  for (const image of ['v2', 'v3']) {
    await change({ template: templateWith(image) });
    for (let i = 0; i < 3; i++) await ready(image);
  }
  expect(sets().map(({ metadata }) => metadata.annotations?.[REVISION])).toEqual(['2', '3']);
});

test('a ReplicaSet that the API rejects is reported in an Event and in the condition Progressing', async () => {
  await start();
  const error = forbidden({ group: 'apps', resource: 'replicasets' }, 'web', 'no room');
  backend.failNext('create replicasets', error);
  await create();
  timers.advance(1_000);
  await settled();
  expect(events()[0]).toMatch(/^ReplicaSetCreateError: Failed to create new replica set "web-\w+": .* no room$/);
  expect(sizes()).toEqual([4]);
});

test('the name of a ReplicaSet with another template is avoided', async () => {
  await start();
  await create({ paused: true });
  await change({ paused: null });
  const [own] = sets();
  stopControllers();
  // Give the ReplicaSet a foreign template, as if the hashes of two templates were equal.
  await backend.remove(REPLICA_SETS, 'a', own?.metadata.name ?? '');
  const { name, namespace, labels } = own?.metadata ?? { name: '' };
  const spec = { ...own?.spec, template: { ...templateWith('foreign'), metadata: { name: '', labels } } };
  await backend.create(REPLICA_SETS, 'a', { ...own, metadata: { name, namespace, labels }, spec } as ReplicaSet);
  await start();
  timers.advance(1_000);
  await settled();
  expect(web().status?.collisionCount).toBe(1);
  expect(sets()).toHaveLength(2);
});

test('the annotations of a Deployment are copied to its ReplicaSet, except those for kubectl and for revisions', async () => {
  await start();
  const annotations = { 'a.b/c': 'd', 'kubectl.kubernetes.io/last-applied-configuration': '{}' };
  await create({}, { annotations });
  expect(sets()[0]?.metadata.annotations).toEqual({
    'a.b/c': 'd',
    [REVISION]: '1',
    'deployment.kubernetes.io/desired-replicas': '4',
    'deployment.kubernetes.io/max-replicas': '5',
  });
});

test('a ReplicaSet without a controller is adopted', async () => {
  await start();
  await create();
  const [own] = sets();
  const none = { metadata: { ownerReferences: null } };
  await backend.patch(REPLICA_SETS, 'a', own?.metadata.name ?? '', 'application/merge-patch+json', none);
  await settled();
  expect(sets()[0]?.metadata.ownerReferences).toEqual(own?.metadata.ownerReferences);
  expect(sets()).toHaveLength(1);
});

test('a Deployment that does not change causes no writes', async () => {
  await start();
  await create();
  await ready('v1');
  const before = backend.calls.length;
  await change({}, { labels: { a: 'b' } });
  const writes = backend.calls.slice(before).filter((call) => /^(create|update|delete)/.test(call));
  expect(writes).toEqual([]);
});

test('after a conflict with another write of a ReplicaSet, no other ReplicaSet is scaled by the same decision', async () => {
  await start();
  await create();
  await ready('v1');
  await change({ paused: false, template: templateWith('v2') });
  await change({ paused: true });
  expect(sizes()).toEqual([3, 2]);
  const [largest] = sets();
  backend.failNext(`update replicasets a/${largest?.metadata.name}`, objectModified(REPLICA_SETS, 'web'));
  const { length } = backend.calls;
  await change({ replicas: 12 });
  expect(backend.calls.slice(length).filter((call) => call.startsWith('update replicasets'))).toHaveLength(1);
  expect(sizes()).toEqual([3, 2]);
  // The concurrent change that caused the conflict also causes the next decision.
  await backend.patch(REPLICA_SETS, 'a', largest?.metadata.name ?? '', 'application/merge-patch+json', {
    metadata: { labels: { changed: 'true' } },
  });
  await settled();
  expect(sizes()).toEqual([8, 5]);
});
