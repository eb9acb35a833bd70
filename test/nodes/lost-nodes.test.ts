import { expect, test } from 'vitest';
import type { CoreV1Event, Node, Pod, PodCondition, StatefulSet, Taint } from '../../src/api/generated/types.ts';
import { EVENTS, NODES, PODS, REPLICA_SETS, STATEFUL_SETS } from '../../src/api/resources.ts';
import { isReady, simplePod, simpleReplicaSet } from '../support/simulated-nodes/objects.ts';
import { type SimulatedCluster, startSimulatedCluster } from '../support/simulated-nodes/simulated-cluster.ts';

const STRATEGIC = 'application/strategic-merge-patch+json';
/** Longer than any wait of the controllers. */
const LONG_MILLIS = 1_200_000;

/** Defer containers, whose names begin with `defer-`, run for a second. */
const start = (nodes: number): Promise<SimulatedCluster> =>
  startSimulatedCluster({
    nodes,
    time: 'virtual',
    script: ({ container }) => (container.startsWith('defer-') ? { runMillis: 1000 } : {}),
  });

const isOn =
  (...names: string[]) =>
  ({ spec }: Pod): boolean =>
    names.includes(spec?.nodeName ?? '');
const isDeleting = ({ metadata }: Pod): boolean => metadata.deletionTimestamp !== undefined;
const named =
  (name: string) =>
  ({ metadata }: { metadata: { name: string } }): boolean =>
    metadata.name === name;
const conditionOf = ({ status }: Pod, of: string): PodCondition | undefined =>
  status?.conditions?.find(({ type }) => type === of);
const taintsOf = ({ spec }: Node): string[] => (spec?.taints ?? []).map(({ key, effect }) => `${key}:${effect}`).sort();
const UNREACHABLE = 'node.kubernetes.io/unreachable';
const isEvicting = (node: Node): boolean => taintsOf(node).includes(`${UNREACHABLE}:NoExecute`);

const podsOf = async (cluster: SimulatedCluster): Promise<Pod[]> => [...(await cluster.until<Pod>(PODS, () => true))];
const nodesOf = (cluster: SimulatedCluster): Promise<readonly Node[]> => cluster.until<Node>(NODES, () => true);
const readyOn = (pods: readonly Pod[], ...names: string[]): number =>
  pods.filter((pod) => isReady(pod) && isOn(...names)(pod)).length;

/** Resolves with the Events of the Pods that have the reason, as `<component> <type> <message>`, once there are as many as Pods. */
async function eventsOf(cluster: SimulatedCluster, pods: readonly Pod[], reason: string): Promise<string[]> {
  const names = new Set(pods.map(({ metadata }) => metadata.name));
  const isOfPods = ({ involvedObject, reason: found }: CoreV1Event): boolean =>
    found === reason && names.has(involvedObject.name ?? '');
  const all = await cluster.until<CoreV1Event>(EVENTS, (events) => events.filter(isOfPods).length >= pods.length);
  return all.filter(isOfPods).map((event) => `${event.source?.component} ${event.type} ${event.message}`);
}

async function deploy(cluster: SimulatedCluster, replicas: number): Promise<readonly Pod[]> {
  const web = simpleReplicaSet('web', replicas);
  await cluster.during(cluster.client.resource(REPLICA_SETS).create(web));
  return cluster.until<Pod>(PODS, (pods) => pods.length === replicas && pods.every(isReady));
}

const taint = (cluster: SimulatedCluster, node: string, added: Taint): Promise<Node> =>
  cluster.during(cluster.client.resource<Node>(NODES).patch(node, undefined, STRATEGIC, { spec: { taints: [added] } }));

test('the Pods of a dead agent become not Ready, are evicted after 300 s and replaced, and go with the Node', async () => {
  await using cluster = await start(3);
  const { timers } = cluster;
  const before = await deploy(cluster, 6);
  const lost = before.filter(isOn('node-3'));
  expect(lost).toHaveLength(2);

  cluster.node('node-3').kill();
  const killedAt = timers.now();
  await cluster.until<Node>(NODES, (nodes) => nodes.some((node) => named('node-3')(node) && !isReady(node)));
  const silentAfter = timers.now() - killedAt;
  expect(silentAfter).toBeGreaterThanOrEqual(40_000);
  expect(silentAfter).toBeLessThanOrEqual(51_000);
  expect(readyOn(await podsOf(cluster), 'node-3')).toBe(2);

  const unready = await cluster.until<Pod>(PODS, (pods) => readyOn(pods, 'node-3') === 0);
  expect([readyOn(unready, 'node-1', 'node-2'), unready.length]).toEqual([4, 6]);
  for (const pod of unready.filter(isOn('node-3')))
    expect([pod.status?.phase, conditionOf(pod, 'Ready')?.status]).toEqual(['Running', 'False']);
  expect(await eventsOf(cluster, lost, 'NodeNotReady')).toEqual(
    lost.map(() => 'node-controller Warning Node is not ready'),
  );

  const tainted = await cluster.until<Node>(NODES, (nodes) => nodes.some(isEvicting));
  const taintedAt = timers.now();
  expect(tainted.map(taintsOf)).toEqual([[], [], [`${UNREACHABLE}:NoExecute`, `${UNREACHABLE}:NoSchedule`]]);
  await cluster.pass(299_000);
  expect((await podsOf(cluster)).filter(isDeleting)).toEqual([]);
  const evicted = (await cluster.until<Pod>(PODS, (pods) => pods.filter(isDeleting).length === 2)).filter(isDeleting);
  expect(timers.now() - taintedAt).toBeGreaterThanOrEqual(300_000);
  expect(evicted.map(({ metadata }) => metadata.uid).sort()).toEqual(lost.map(({ metadata }) => metadata.uid).sort());
  for (const pod of evicted)
    expect(conditionOf(pod, 'DisruptionTarget')).toMatchObject({ status: 'True', reason: 'DeletionByTaintManager' });
  expect((await eventsOf(cluster, lost, 'TaintManagerEviction')).sort()).toEqual(
    lost
      .map(({ metadata }) => `Marking for deletion Pod default/${metadata.name}`)
      .map((message) => `taint-eviction-controller Normal ${message}`)
      .sort(),
  );
  await cluster.until<Pod>(PODS, (pods) => readyOn(pods, 'node-1', 'node-2') === 6);

  // The Pods still exist, because the dead agent has not ended them.
  await cluster.pass(LONG_MILLIS);
  expect((await podsOf(cluster)).filter(isOn('node-3')).map(isDeleting)).toEqual([true, true]);
  await cluster.removeNode('node-3');
  await cluster.pass(39_000);
  expect((await podsOf(cluster)).filter(isOn('node-3'))).toHaveLength(2);
  await cluster.until<Pod>(PODS, (pods) => pods.length === 6 && pods.every(isReady));
});

test('an agent that returns in time keeps its Pods, and their eviction is cancelled', async () => {
  await using cluster = await start(3);
  const before = await deploy(cluster, 6);
  cluster.node('node-3').kill();
  await cluster.until<Node>(NODES, (nodes) => nodes.some(isEvicting));
  await cluster.pass(200_000);
  await cluster.restart('node-3');
  const after = await cluster.until<Pod>(PODS, (pods) => pods.every(isReady));
  await cluster.until<Node>(NODES, (nodes) => nodes.every((node) => taintsOf(node).length === 0));
  await cluster.pass(200_000);
  const uids = (pods: readonly Pod[]) => pods.map(({ metadata }) => metadata.uid).sort();
  for (const pods of [after, await podsOf(cluster)]) expect(uids(pods)).toEqual(uids(before));
  const lost = before.filter(isOn('node-3'));
  expect((await eventsOf(cluster, lost, 'TaintManagerEviction')).sort()).toEqual(
    lost
      .map(({ metadata }) => `taint-eviction-controller Normal Cancelling deletion of Pod default/${metadata.name}`)
      .sort(),
  );
});

test('while no agent lives, no Pod is evicted and no node keeps a NoExecute taint', async () => {
  await using cluster = await start(3);
  const before = await deploy(cluster, 6);
  cluster.node('node-3').kill();
  await cluster.until<Node>(NODES, (nodes) => nodes.some(isEvicting));
  for (const name of ['node-1', 'node-2']) cluster.node(name).kill();
  await cluster.until<Node>(NODES, (nodes) => nodes.every((node) => !isReady(node)));
  await cluster.pass(LONG_MILLIS);
  expect((await nodesOf(cluster)).map(taintsOf)).toEqual(Array(3).fill([`${UNREACHABLE}:NoSchedule`]));
  const silent = await podsOf(cluster);
  expect([silent.length, silent.filter(isDeleting).length, silent.filter(isReady).length]).toEqual([6, 0, 0]);

  await Promise.all(['node-1', 'node-2', 'node-3'].map((name) => cluster.restart(name)));
  const after = await cluster.until<Pod>(PODS, (pods) => pods.every(isReady));
  expect(new Set(after.map(({ metadata }) => metadata.uid))).toEqual(
    new Set(before.map(({ metadata }) => metadata.uid)),
  );
});

/** A finalizer keeps the Pod after its end. */
const keptPod = (): Pod => {
  const pod = simplePod('db', { nodeName: 'node-2', deferContainers: [ENTRY] });
  return { ...pod, metadata: { ...pod.metadata, finalizers: ['example.com/keep'] } };
};
const isOver = (pod: Pod): boolean => {
  const reason = conditionOf(pod, 'Deferred')?.reason;
  return reason !== undefined && reason !== 'DeferContainersRunning';
};
async function letGo(cluster: SimulatedCluster): Promise<void> {
  const change = { metadata: { finalizers: [] } };
  const pods = cluster.client.resource<Pod>(PODS);
  await cluster.during(pods.patch('db', 'default', 'application/merge-patch+json', change));
  await cluster.until<Pod>(PODS, ({ length }) => length === 0);
}

const ENTRY = { name: 'defer-keys', image: 'busybox:1.28', timeoutSeconds: 10 };

test('a Pod that was evicted while its agent was dead runs its defer containers when the agent returns', async () => {
  await using cluster = await start(2);
  await cluster.during(cluster.client.resource<Pod>(PODS).create(keptPod()));
  await cluster.until<Pod>(PODS, (pods) => pods.length === 1 && pods.every(isReady));
  cluster.node('node-2').kill();
  await cluster.until<Pod>(PODS, (pods) => pods.every(isDeleting));
  await cluster.pass(LONG_MILLIS);
  const [waiting] = await podsOf(cluster);
  expect([waiting?.status?.phase, waiting?.status?.termination]).toEqual(['Running', undefined]);
  await cluster.restart('node-2');
  const [ended] = await cluster.until<Pod>(PODS, ([pod]) => pod !== undefined && isOver(pod));
  expect(ended?.status?.termination?.reason).toBe('Evicted');
  expect(conditionOf(ended as Pod, 'Deferred')).toMatchObject({ status: 'True', reason: 'DeferContainersSucceeded' });
  await letGo(cluster);
});

test('the Pods of a removed node fail before they are removed, and the lists of their defer containers as NodeLost', async () => {
  await using cluster = await start(2);
  await cluster.during(cluster.client.resource<Pod>(PODS).create(keptPod()));
  await cluster.until<Pod>(PODS, (pods) => pods.length === 1 && pods.every(isReady));
  await cluster.removeNode('node-2');
  const [failed] = await cluster.until<Pod>(PODS, (pods) => pods.every(isDeleting));
  expect(failed?.status?.phase).toBe('Failed');
  expect(conditionOf(failed as Pod, 'DisruptionTarget')).toMatchObject({
    status: 'True',
    reason: 'DeletionByPodGC',
    message: 'PodGC: node no longer exists',
  });
  expect(conditionOf(failed as Pod, 'Deferred')).toMatchObject({
    status: 'False',
    reason: 'NodeLost',
    message: 'defer containers that did not complete: [defer-keys]',
  });
  await letGo(cluster);
});

/** Starts a StatefulSet `db` with three Pods, the last on a node whose agent then dies. Resolves with the name of that node. */
async function loseMember(cluster: SimulatedCluster): Promise<string> {
  const { spec } = simpleReplicaSet('db', 3);
  const db: StatefulSet = {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name: 'db', namespace: 'default' },
    spec: { ...spec, selector: spec?.selector ?? {}, template: spec?.template ?? {}, serviceName: 'db' },
  };
  await cluster.during(cluster.client.resource<StatefulSet>(STATEFUL_SETS).create(db));
  const pods = await cluster.until<Pod>(PODS, (all) => all.length === 3 && all.every(isReady));
  const node = pods.find(named('db-2'))?.spec?.nodeName ?? '';
  cluster.node(node).kill();
  return node;
}

test.each(['is removed', 'is out of service'])(
  'a Pod of a StatefulSet on a lost node has no successor until the node %s',
  async (how) => {
    await using cluster = await start(3);
    const lost = await loseMember(cluster);
    await cluster.until<Pod>(PODS, (pods) => pods.some(isDeleting));
    await cluster.pass(LONG_MILLIS);
    const waiting = await podsOf(cluster);
    expect(waiting.map(({ metadata }) => metadata.name)).toEqual(['db-0', 'db-1', 'db-2']);
    expect(waiting.filter(isDeleting).map(({ metadata }) => metadata.name)).toEqual(['db-2']);

    if (how === 'is removed') await cluster.removeNode(lost);
    else
      await taint(cluster, lost, { key: 'node.kubernetes.io/out-of-service', value: 'shutdown', effect: 'NoExecute' });
    const healed = await cluster.until<Pod>(PODS, (pods) => pods.length === 3 && pods.every(isReady));
    expect(healed.map(({ metadata }) => metadata.name)).toEqual(['db-0', 'db-1', 'db-2']);
    expect(healed.filter(isOn(lost))).toEqual([]);
  },
);
