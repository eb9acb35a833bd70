import { expect, test } from 'vitest';
import type { ControllerRevision, DaemonSet, DaemonSetSpec, Node, Pod } from '../../src/api/generated/types.ts';
import { CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS } from '../../src/api/resources.ts';
import { runCommandOk } from '../../src/platform/processes.ts';
import { KUBECTL } from '../support/kubectl.ts';
import { allReady, isReady, simpleDeployment } from '../support/simulated-nodes/objects.ts';
import { type SimulatedCluster, startSimulatedCluster } from '../support/simulated-nodes/simulated-cluster.ts';

const STRATEGIC = 'application/strategic-merge-patch+json';

async function deployed(cluster: SimulatedCluster, nodes: number, spec: Partial<DaemonSetSpec> = {}): Promise<void> {
  const { selector = {}, template = {} } = simpleDeployment('agent', 1).spec ?? {};
  const object: DaemonSet = {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'agent', namespace: 'default' },
    spec: { selector, template, ...spec },
  };
  await cluster.during(cluster.client.resource<DaemonSet>(DAEMON_SETS).create(object));
  await cluster.until<DaemonSet>(DAEMON_SETS, isComplete(nodes));
}

/** Each of `nodes` nodes has one available Pod of the current template, and the status is up to date. */
const isComplete =
  (nodes: number) =>
  ([agent]: readonly DaemonSet[]): boolean => {
    const status = agent?.status;
    const counts = [
      status?.desiredNumberScheduled,
      status?.currentNumberScheduled,
      status?.updatedNumberScheduled,
      status?.numberAvailable,
    ];
    return status?.observedGeneration === agent?.metadata.generation && counts.every((count) => count === nodes);
  };

const versionOf = ({ spec }: Pod): string | undefined => spec?.containers[0]?.env?.[0]?.value;
const isActive = ({ metadata }: Pod): boolean => metadata.deletionTimestamp === undefined;
const nodesOf = (pods: readonly Pod[]): (string | undefined)[] => pods.map(({ spec }) => spec?.nodeName).sort();

const change = ({ client, during }: SimulatedCluster, spec: object): Promise<DaemonSet> =>
  during(client.resource<DaemonSet>(DAEMON_SETS).patch('agent', 'default', STRATEGIC, { spec }));

const version = (value: string): object => ({
  template: { spec: { containers: [{ name: 'app', env: [{ name: 'V', value }] }] } },
});

async function updated(
  cluster: SimulatedCluster,
  to: string,
  nodes: number,
  check: (pods: readonly Pod[]) => void,
): Promise<void> {
  await cluster.until<Pod>(PODS, (pods) => {
    check(pods);
    return allReady(nodes)(pods) && pods.every((pod) => versionOf(pod) === to);
  });
  await cluster.until<DaemonSet>(DAEMON_SETS, isComplete(nodes));
}

test('a DaemonSet follows nodes that are added, tainted and removed', async () => {
  await using cluster = await startSimulatedCluster({ nodes: 3, time: 'virtual' });
  await deployed(cluster, 3);
  expect(nodesOf(await cluster.until<Pod>(PODS, allReady(3)))).toEqual(['node-1', 'node-2', 'node-3']);

  await cluster.addNode();
  await cluster.until<DaemonSet>(DAEMON_SETS, isComplete(4));
  expect(nodesOf(await cluster.until<Pod>(PODS, allReady(4)))).toEqual(['node-1', 'node-2', 'node-3', 'node-4']);

  const taint = (taints: object[]): Promise<Node> =>
    cluster.during(cluster.client.resource<Node>(NODES).patch('node-2', undefined, STRATEGIC, { spec: { taints } }));
  await taint([{ key: 'a.b/c', effect: 'NoSchedule' }]);
  const isMisscheduled = ([agent]: readonly DaemonSet[]): boolean => agent?.status?.numberMisscheduled === 1;
  await cluster.until<DaemonSet>(DAEMON_SETS, isMisscheduled);
  expect(await cluster.until<Pod>(PODS, () => true)).toHaveLength(4);

  await taint([{ key: 'a.b/c', effect: 'NoExecute' }]);
  expect(nodesOf(await cluster.until<Pod>(PODS, allReady(3)))).toEqual(['node-1', 'node-3', 'node-4']);

  await cluster.removeNode('node-4');
  expect(nodesOf(await cluster.until<Pod>(PODS, allReady(2)))).toEqual(['node-1', 'node-3']);
  await cluster.until<DaemonSet>(DAEMON_SETS, isComplete(2));
});

test('an update with maxUnavailable 1 keeps two of three nodes ready and runs no second Pod on a node', async () => {
  await using cluster = await startSimulatedCluster({ nodes: 3, time: 'virtual' });
  await deployed(cluster, 3);
  await change(cluster, version('2'));
  await updated(cluster, '2', 3, (pods) => {
    // A Pod that has ended may be replaced before it is removed.
    const running = pods.filter(({ status }) => status?.phase === 'Pending' || status?.phase === 'Running');
    expect(new Set(running.map(({ spec }) => spec?.nodeName)).size).toBe(running.length);
    expect(pods.filter((pod) => isActive(pod) && isReady(pod)).length).toBeGreaterThanOrEqual(2);
  });
});

test('an update with maxSurge 1 keeps all nodes ready and runs a second Pod on one node at a time', async () => {
  await using cluster = await startSimulatedCluster({ nodes: 3, time: 'virtual' });
  const rollingUpdate = { maxSurge: 1, maxUnavailable: 0 };
  await deployed(cluster, 3, { updateStrategy: { type: 'RollingUpdate', rollingUpdate } });
  await change(cluster, version('2'));
  let most = 0;
  await updated(cluster, '2', 3, (pods) => {
    const active = pods.filter(isActive);
    most = Math.max(most, active.length);
    expect(active.length).toBeLessThanOrEqual(4);
    expect(new Set(nodesOf(active.filter(isReady))).size).toBe(3);
  });
  expect(most).toBe(4);
});

test('an update with maxSurge 1 removes the Pod from a node that takes no new Pods', async () => {
  await using cluster = await startSimulatedCluster({ nodes: 3, time: 'virtual' });
  const rollingUpdate = { maxSurge: 1, maxUnavailable: 0 };
  await deployed(cluster, 3, { updateStrategy: { type: 'RollingUpdate', rollingUpdate } });
  const taints = [{ key: 'a.b/c', effect: 'NoSchedule' }];
  const nodes = cluster.client.resource<Node>(NODES);
  await cluster.during(nodes.patch('node-2', undefined, STRATEGIC, { spec: { taints } }));
  await cluster.until<DaemonSet>(DAEMON_SETS, ([agent]) => agent?.status?.numberMisscheduled === 1);
  await change(cluster, version('2'));
  await updated(cluster, '2', 2, () => undefined);
  expect(nodesOf(await cluster.until<Pod>(PODS, allReady(2)))).toEqual(['node-1', 'node-3']);
});

test('with maxSurge 1, deleted Pods are replaced before they have ended', async () => {
  await using cluster = await startSimulatedCluster({
    nodes: 3,
    time: 'virtual',
    script: () => ({ stopMillis: 300_000 }),
  });
  const rollingUpdate = { maxSurge: 1, maxUnavailable: 0 };
  await deployed(cluster, 3, { updateStrategy: { type: 'RollingUpdate', rollingUpdate } });
  const pods = cluster.client.resource<Pod>(PODS);
  const first = await cluster.until<Pod>(PODS, allReady(3));
  const deletions = first.map(({ metadata }) => pods.delete(metadata.name, 'default', { gracePeriodSeconds: 600 }));
  await cluster.during(Promise.all(deletions));
  const all = await cluster.until<Pod>(PODS, (each) => allReady(3)(each.filter(isActive)));
  expect(
    all
      .filter((pod) => !isActive(pod))
      .map(({ metadata }) => metadata.uid)
      .sort(),
  ).toEqual(first.map(({ metadata }) => metadata.uid).sort());
  expect(nodesOf(all.filter(isActive))).toEqual(['node-1', 'node-2', 'node-3']);
});

test('kubectl shows the rollout of a DaemonSet over three nodes and its history, and undoes an update', async () => {
  await using cluster = await startSimulatedCluster({ nodes: 3, https: true });
  const kubectl = (...args: string[]): Promise<string> =>
    runCommandOk(KUBECTL, [...args, '--kubeconfig', cluster.kubeconfig ?? '']);
  await deployed(cluster, 3);
  await kubectl('set', 'env', 'daemonset/agent', 'V=2');
  const status = await kubectl('rollout', 'status', 'daemonset/agent', '--timeout=60s');
  expect(status).toMatch(/daemon set "agent" successfully rolled out\n$/);
  const versions = async (): Promise<unknown[]> => (await cluster.until<Pod>(PODS, allReady(3))).map(versionOf);
  expect(await versions()).toEqual(['2', '2', '2']);
  expect(await kubectl('get', 'daemonset', 'agent')).toMatch(/^agent +3 +3 +3 +3 +3 +<none> /m);
  expect(await kubectl('rollout', 'history', 'daemonset/agent')).toMatch(/\n1 +<none>\n2 +<none>\n/);
  expect(await kubectl('rollout', 'undo', 'daemonset/agent')).toBe('daemonset.apps/agent rolled back\n');
  await kubectl('rollout', 'status', 'daemonset/agent', '--timeout=60s');
  expect(await versions()).toEqual([undefined, undefined, undefined]);
  expect(await kubectl('rollout', 'history', 'daemonset/agent')).toMatch(/\n2 +<none>\n3 +<none>\n/);
});

test('the patch in a ControllerRevision undoes an update, and reuses the revision', async () => {
  await using cluster = await startSimulatedCluster({ nodes: 3, time: 'virtual' });
  await deployed(cluster, 3);
  await change(cluster, version('1'));
  await updated(cluster, '1', 3, () => undefined);
  const before = await cluster.until<ControllerRevision>(CONTROLLER_REVISIONS, ({ length }) => length === 2);
  const undone = before.find(({ revision }) => revision === 2);
  await change(cluster, version('2'));
  await updated(cluster, '2', 3, () => undefined);
  const patch = undone?.data as object;
  const agents = cluster.client.resource<DaemonSet>(DAEMON_SETS);
  await cluster.during(agents.patch('agent', 'default', STRATEGIC, patch));
  await updated(cluster, '1', 3, () => undefined);
  const after = await cluster.until<ControllerRevision>(CONTROLLER_REVISIONS, ({ length }) => length === 3);
  expect(after.find(({ metadata }) => metadata.uid === undone?.metadata.uid)?.revision).toBe(4);
  expect(after.map(({ revision }) => revision).sort()).toEqual([1, 3, 4]);
});
