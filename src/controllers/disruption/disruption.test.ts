import { describe, expect, onTestFinished, test } from 'vitest';
import { anyKind, createCatalog } from '../../api/catalog.ts';
import { kind } from '../../api/declaration.ts';
import type {
  CoreV1Event,
  Deployment,
  Pod,
  PodCondition,
  PodDisruptionBudget,
  PodDisruptionBudgetSpec,
} from '../../api/generated/types.ts';
import { kinds } from '../../api/kinds.ts';
import {
  DEPLOYMENTS,
  EVENTS,
  POD_DISRUPTION_BUDGETS,
  PODS,
  REPLICA_SETS,
  REPLICATION_CONTROLLERS,
} from '../../api/resources.ts';
import { nameColumn } from '../../api/table.ts';
import { startRegistry } from '../../apiserver/registry/testing.ts';
import { withInformers } from '../../client/registry-fixture.ts';
import { clientOf } from '../../client/typed-client.ts';
import type { KubeObject, ObjectMeta, ResourceRef } from '../../machinery/meta.ts';
import { isApiError } from '../../machinery/status.ts';
import { formatTime } from '../../machinery/time.ts';
import { silentLog } from '../../platform/silent-log.ts';
import { backend, controllerOptions, settled, timers, useRegistry } from '../controller-fixture.ts';
import { replicaSet, template } from '../replicas/replicas-fixture.ts';
import { startDisruption } from './disruption.ts';

useRegistry();

const start = async (): Promise<void> => {
  await startDisruption({ ...controllerOptions(), catalog: createCatalog(kinds) });
  await settled();
};

const budgetObject = (spec: PodDisruptionBudgetSpec, name = 'web'): PodDisruptionBudget => ({
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name, namespace: 'a' },
  spec: { selector: { matchLabels: { app: 'web' } }, ...spec },
});
const setBudget = async (spec: PodDisruptionBudgetSpec, name?: string): Promise<void> => {
  await backend.set(POD_DISRUPTION_BUDGETS, budgetObject(spec, name));
  await settled();
};
const statusOf = (name = 'web') =>
  (backend.objects(POD_DISRUPTION_BUDGETS) as PodDisruptionBudget[]).find(({ metadata }) => metadata.name === name)
    ?.status;

const put = async (name: string, metadata: Partial<ObjectMeta> = {}, isReady = true): Promise<Pod> => {
  const conditions: PodCondition[] = [{ type: 'Ready', status: isReady ? 'True' : 'False' }];
  const old = (backend.objects(PODS) as Pod[]).find((each) => each.metadata.name === name);
  const pod = await backend.set<Pod>(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'a', labels: { app: 'web' }, ...metadata },
    spec: old?.spec ?? { containers: [{ name: 'app', image: 'x' }], nodeName: 'n1' },
    status: { phase: 'Running', conditions },
  });
  await settled();
  return pod;
};
const create = async (ref: ResourceRef, object: KubeObject): Promise<KubeObject> => {
  const created = await backend.set(ref, object);
  await settled();
  return created;
};
const reference = ({ apiVersion, kind, metadata }: KubeObject): Partial<ObjectMeta> => ({
  ownerReferences: [{ apiVersion, kind, name: metadata.name, uid: metadata.uid ?? '', controller: true }],
});
const evict = (name: string, deleteOptions: object = {}): Promise<unknown> => {
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace: 'a' }, deleteOptions };
  return clientOf(backend).resource(PODS).createSubresource(name, 'a', 'eviction', eviction);
};
const events = (): string[] =>
  (backend.objects(EVENTS) as CoreV1Event[]).map(({ reason, message = '' }) => `${reason}: ${message}`);

test('the status follows the Pods and the spec of the budget', async () => {
  await start();
  await setBudget({ minAvailable: 1 });
  expect(statusOf()).toMatchObject({ expectedPods: 0, disruptionsAllowed: 0, observedGeneration: 1 });
  await put('a');
  await put('b');
  expect(statusOf()).toMatchObject({ expectedPods: 2, currentHealthy: 2, desiredHealthy: 1, disruptionsAllowed: 1 });
  await put('b', {}, false);
  expect(statusOf()).toMatchObject({ expectedPods: 2, currentHealthy: 1, disruptionsAllowed: 0 });
  await setBudget({ minAvailable: 0 });
  expect(statusOf()).toMatchObject({ desiredHealthy: 0, disruptionsAllowed: 1, observedGeneration: 2 });
  await put('a', { labels: { app: 'other' } });
  expect(statusOf()).toMatchObject({ expectedPods: 1, currentHealthy: 0, disruptionsAllowed: 0 });
});

describe('the scale of the owner', () => {
  test.each<[string, ResourceRef, KubeObject]>([
    ['a ReplicaSet', REPLICA_SETS, replicaSet({ replicas: 3 })],
    [
      'a ReplicationController',
      REPLICATION_CONTROLLERS,
      {
        ...replicaSet(),
        apiVersion: 'v1',
        kind: 'ReplicationController',
        spec: { replicas: 3, selector: { app: 'web' }, template },
      } as KubeObject,
    ],
    [
      'a StatefulSet',
      { group: 'apps', version: 'v1', resource: 'statefulsets' },
      {
        ...replicaSet(),
        kind: 'StatefulSet',
        spec: { replicas: 3, serviceName: 'web', selector: { matchLabels: { app: 'web' } }, template },
      } as KubeObject,
    ],
  ])('%s is the number of expected Pods, and counts at once when it changes', async (_, ref, object) => {
    await start();
    const owner = await create(ref, object);
    await setBudget({ maxUnavailable: 1 });
    for (const name of ['a', 'b']) await put(name, reference(owner));
    expect(statusOf()).toMatchObject({ expectedPods: 3, desiredHealthy: 2, currentHealthy: 2, disruptionsAllowed: 0 });
    const scaled = { ...object, spec: { ...(object as { spec?: object }).spec, replicas: 2 } };
    await create(ref, scaled as KubeObject);
    expect(statusOf()).toMatchObject({ expectedPods: 2, desiredHealthy: 1, disruptionsAllowed: 1 });
  });

  test('a Deployment counts for the Pods of its ReplicaSets, each once, and a ReplicaSet whose Deployment is gone counts itself', async () => {
    await start();
    const spec = { replicas: 4, selector: { matchLabels: { app: 'web' } }, template };
    const deployment = (await create(DEPLOYMENTS, {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web', namespace: 'a' },
      spec,
    } as Deployment)) as Deployment;
    const sets = [];
    for (const name of ['old', 'new'])
      sets.push(await create(REPLICA_SETS, replicaSet({ replicas: 2 }, { name, ...reference(deployment) })));
    await setBudget({ minAvailable: '50%' });
    for (const [index, set] of sets.entries()) await put(`pod-${index}`, reference(set));
    expect(statusOf()).toMatchObject({ expectedPods: 4, desiredHealthy: 2, currentHealthy: 2, disruptionsAllowed: 0 });
    await create(DEPLOYMENTS, { ...deployment, spec: { ...spec, replicas: 2 } } as Deployment);
    expect(statusOf()).toMatchObject({ expectedPods: 2, desiredHealthy: 1, disruptionsAllowed: 1 });
    await backend.remove(DEPLOYMENTS, 'a', 'web');
    await settled();
    expect(statusOf()).toMatchObject({ expectedPods: 4, desiredHealthy: 2, disruptionsAllowed: 0 });
  });

  test('no disruption is allowed until the owner exists and has a scale', async () => {
    await start();
    const owner = replicaSet({ replicas: 1 }, { uid: 'later' });
    await setBudget({ maxUnavailable: 1 });
    await put('a', reference(owner));
    expect(statusOf()?.conditions).toMatchObject([
      { status: 'False', reason: 'SyncFailed', message: 'found no controllers for pod "a"' },
    ]);
    const created = await create(REPLICA_SETS, replicaSet({ replicas: 1 }));
    await put('a', reference(created));
    expect(statusOf()).toMatchObject({ expectedPods: 1, disruptionsAllowed: 1 });
    await put(
      'a',
      reference({ ...created, apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'job', uid: 'job' } }),
    );
    expect(statusOf()?.conditions).toMatchObject([{ message: 'jobs.batch does not implement the scale subresource' }]);
    await put(
      'a',
      reference({ ...created, apiVersion: 'example.com/v1', kind: 'Odd', metadata: { name: 'odd', uid: 'odd' } }),
    );
    expect(statusOf()?.conditions).toMatchObject([
      { message: 'no matches for kind "Odd" in version "example.com/v1"' },
    ]);
    expect(events()).toContain(
      'CalculateExpectedPodCountFailed: Failed to calculate the number of expected pods: found no controllers for pod "a"',
    );
  });
});

test('a kind with a scale that is added while the controller runs is an owner like any other', async () => {
  const catalog = createCatalog(kinds);
  const { registry } = await startRegistry({ catalog });
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const client = clientOf(registry);
  await startDisruption({ ...withInformers({ client, timers, log: silentLog, signal: stop.signal }), catalog });
  const OBJECT = ['... 0 meta.v1.TypeMeta', 'metadata? 1 meta.v1.ObjectMeta'];
  const fleet = anyKind(
    kind<KubeObject>('example.com/v1', 'Fleet', {
      types: { Fleet: [...OBJECT, 'spec? 2 FleetSpec'], FleetSpec: ['replicas? 1 int32'] },
      scale: () => 'app=web',
      columns: [nameColumn],
    }),
  );
  catalog.add(fleet);
  onTestFinished(() => catalog.remove(fleet));
  const fleets = client.resource<KubeObject & { spec: object }>({
    group: 'example.com',
    version: 'v1',
    resource: 'fleets',
  });
  const metadata = { name: 'f', namespace: 'default' };
  const owner = await fleets.create({ apiVersion: 'example.com/v1', kind: 'Fleet', metadata, spec: { replicas: 2 } });
  await client.resource<Pod>(PODS).create({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'a', namespace: 'default', labels: { app: 'web' }, ...reference(owner) },
    spec: { containers: [{ name: 'app', image: 'x' }] },
  });
  const budgets = client.resource<PodDisruptionBudget>(POD_DISRUPTION_BUDGETS);
  const { spec } = budgetObject({ maxUnavailable: 1 });
  await budgets.create({ ...budgetObject({}), metadata: { name: 'web', namespace: 'default' }, spec });
  const status = async () => (await budgets.get('web', 'default')).status;
  await settled();
  expect(await status()).toMatchObject({ expectedPods: 2, desiredHealthy: 1 });
  await fleets.update({ ...owner, spec: { replicas: 5 } });
  await settled();
  expect(await status()).toMatchObject({ expectedPods: 5, desiredHealthy: 4 });
});

describe('evictions', () => {
  test('evictions are refused beyond the budget, and the budget recovers when the evicted Pod has been replaced', async () => {
    await start();
    await setBudget({ minAvailable: 2 });
    for (const name of ['a', 'b', 'c']) await put(name);
    expect(statusOf()).toMatchObject({ disruptionsAllowed: 1 });
    await evict('a');
    await expect(evict('b')).rejects.toThrow(/violate the pod's disruption budget/);
    await settled();
    expect(statusOf()).toMatchObject({ currentHealthy: 2, disruptionsAllowed: 0, expectedPods: 3 });
    expect(statusOf()?.disruptedPods).toBeUndefined();
    await backend.remove(PODS, 'a', 'a');
    await put('d');
    expect(statusOf()).toMatchObject({ currentHealthy: 3, disruptionsAllowed: 1 });
    await evict('b');
  });

  test('a recorded eviction without a deletion counts for two minutes, and then the condition of the Pod is reset', async () => {
    await start();
    await setBudget({ minAvailable: 1 });
    for (const name of ['a', 'b']) await put(name);
    // The API server dies after it has written the condition, and before it deletes the Pod.
    const disrupted = { ...statusOf(), disruptionsAllowed: 0, disruptedPods: { a: formatTime(timers.now()) } };
    await backend.setStatus(POD_DISRUPTION_BUDGETS, 'a', 'web', disrupted);
    const target = { type: 'DisruptionTarget', status: 'True' as const, lastTransitionTime: formatTime(timers.now()) };
    const conditions = [{ type: 'Ready', status: 'True' as const }, target];
    await backend.setStatus(PODS, 'a', 'a', { phase: 'Running', conditions });
    await settled();
    expect(statusOf()).toMatchObject({ currentHealthy: 1, disruptionsAllowed: 0 });
    timers.advance(119_000);
    await settled();
    expect(statusOf()).toMatchObject({ currentHealthy: 1, disruptionsAllowed: 0 });
    timers.advance(1_000);
    await settled();
    expect(statusOf()).toMatchObject({ currentHealthy: 2, disruptionsAllowed: 1 });
    expect(statusOf()?.disruptedPods).toBeUndefined();
    const [pod] = backend.objects(PODS) as Pod[];
    expect(pod?.status?.conditions).toContainEqual({
      type: 'DisruptionTarget',
      status: 'False',
      lastTransitionTime: formatTime(timers.now()),
    });
    expect(events()).toContain("NotDeleted: Pod was expected by PDB a/web to be deleted but it wasn't");
  });

  test('an eviction that is recorded while the controller decides is not lost', async () => {
    await start();
    await setBudget({ minAvailable: 1 });
    for (const name of ['a', 'b', 'c']) await put(name);
    const { update } = backend;
    backend.update = async (ref, object, options) => {
      backend.update = update;
      await evict('a', { dryRun: [] });
      return update(ref, object, options);
    };
    await put('c', {}, false);
    expect(backend.update).toBe(update);
    expect(statusOf()).toMatchObject({ currentHealthy: 1, disruptionsAllowed: 0 });
    expect(await evict('b').catch((error: unknown) => isApiError(error, 'TooManyRequests'))).toBe(true);
  });
});

test('an Event reports a new Pod that several budgets select, and both budgets follow it', async () => {
  await start();
  await setBudget({ minAvailable: 1 });
  await setBudget({ minAvailable: 0 }, 'other');
  await put('a', {}, false);
  await put('a');
  expect(statusOf()).toMatchObject({ currentHealthy: 1, disruptionsAllowed: 0 });
  expect(statusOf('other')).toMatchObject({ currentHealthy: 1, disruptionsAllowed: 1 });
  expect(events().filter((text) => text.startsWith('Multiple'))).toEqual([
    expect.stringMatching(
      /^MultiplePodDisruptionBudgets: Pod "a"\/"a" matches multiple PodDisruptionBudgets\. {2}Chose "(web|other)" arbitrarily\.$/,
    ),
  ]);
  await expect(evict('a')).rejects.toMatchObject({ code: 500 });
});
