import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import type { Lease, Node, Pod } from '../../src/api/generated/types.ts';
import { LEASES, NODES, PODS } from '../../src/api/resources.ts';
import { clientFromKubeconfig } from '../../src/client/kubeconfig.ts';
import { allReady, conditionOf, isReady, simplePod } from '../support/simulated-nodes/objects.ts';
import {
  type SimulatedCluster,
  type SimulatedNode,
  startSimulatedCluster,
} from '../support/simulated-nodes/simulated-cluster.ts';

const create = (cluster: SimulatedCluster, ...pods: Pod[]) =>
  cluster.during(Promise.all(pods.map((pod) => cluster.client.resource<Pod>(PODS).create(pod))));

const numbered = (count: number): Pod[] => Array.from({ length: count }, (_, i) => simplePod(`pod-${i}`));

const startsOf = ({ runtime }: SimulatedNode): string[] =>
  runtime.trace.filter(({ what }) => what === 'start').map(({ podUid }) => podUid);

async function podsByNode(cluster: SimulatedCluster): Promise<Record<string, string[]>> {
  const { items } = await cluster.client.resource<Pod>(PODS).list();
  const byNode = Object.groupBy(items, ({ spec }) => spec?.nodeName ?? '');
  return Object.fromEntries(
    Object.entries(byNode).map(([node, pods = []]) => [node, pods.map(({ metadata }) => metadata.uid ?? '').sort()]),
  );
}

test.each(['real', 'virtual'] as const)(
  'three nodes run the Pods that the scheduler spreads, in %s time',
  async (time) => {
    await using cluster = await startSimulatedCluster({ nodes: [{ labels: { zone: 'a' } }, {}, {}], time });
    const nodes = await cluster.until<Node>(NODES, allReady(3));
    expect(nodes.map(({ metadata, spec }) => [metadata.name, spec?.podCIDR, metadata.labels?.['zone']]).sort()).toEqual(
      [
        ['node-1', '10.128.1.0/24', 'a'],
        ['node-2', '10.128.2.0/24', undefined],
        ['node-3', '10.128.3.0/24', undefined],
      ],
    );
    expect(nodes.map(({ status }) => status?.nodeInfo?.machineID).sort()).toEqual(['node-1', 'node-2', 'node-3']);
    const { items: leases } = await cluster.client.resource<Lease>(LEASES).list();
    expect(leases.map(({ spec }) => spec?.holderIdentity).sort()).toEqual(['node-1', 'node-2', 'node-3']);

    await create(cluster, ...numbered(6));
    const pods = await cluster.until<Pod>(PODS, allReady(6));
    const byNode = await podsByNode(cluster);
    expect(Object.values(byNode).map(({ length }) => length)).toEqual([2, 2, 2]);
    for (const node of cluster.nodes.values()) expect(startsOf(node).sort()).toEqual(byNode[node.name]);
    for (const { spec, status } of pods) {
      const { ip, podCidr } = cluster.node(spec?.nodeName ?? '');
      expect(status?.hostIP).toBe(ip);
      expect(status?.podIP?.startsWith(podCidr.replace('0/24', ''))).toBe(true);
    }
    expect(new Set(pods.map(({ status }) => status?.podIP)).size).toBe(6);
  },
);

test('containers exit, fail to start and become ready late as their script says', async () => {
  await using cluster = await startSimulatedCluster({
    nodes: 3,
    time: 'virtual',
    script: ({ pod, attempt }) => {
      if (pod.name === 'done') return { runMillis: 5_000, exitCode: 3 };
      if (pod.name === 'refused') return attempt === 0 ? { startError: 'no such file' } : {};
      return pod.name === 'late' ? { readyAfterMillis: 60_000 } : {};
    },
  });
  const readinessProbe = { exec: { command: ['check'] }, periodSeconds: 1 };
  const begun = cluster.timers.now();
  await create(
    cluster,
    simplePod('done', { restartPolicy: 'Never' }),
    simplePod('refused'),
    simplePod('late', {}, { readinessProbe }),
  );
  const isLast = (pod: Pod): boolean => pod.metadata.name !== 'done';
  await cluster.until<Pod>(PODS, (pods) => pods.filter(isLast).every(isReady));
  const pods = new Map((await cluster.client.resource<Pod>(PODS).list()).items.map((pod) => [pod.metadata.name, pod]));
  const seconds = (cluster.timers.now() - begun) / 1000;
  expect(seconds).toBeGreaterThanOrEqual(60);
  expect(seconds).toBeLessThan(63);
  expect(pods.get('done')?.status).toMatchObject({
    phase: 'Failed',
    containerStatuses: [{ state: { terminated: { exitCode: 3 } } }],
  });
  expect(pods.get('refused')?.status).toMatchObject({
    containerStatuses: [
      { restartCount: 1, lastState: { terminated: { reason: 'StartError', exitCode: 128, message: 'no such file' } } },
    ],
  });
});

test.each(['real', 'virtual'] as const)(
  "a killed agent's Pods keep running and its restart adopts them, in %s time",
  async (time) => {
    await using cluster = await startSimulatedCluster({ nodes: 3, time });
    await create(cluster, ...numbered(6));
    await cluster.until<Pod>(PODS, allReady(6));
    const node = cluster.node('node-2');
    const before = (await podsByNode(cluster))['node-2'] ?? [];
    node.kill();
    // The agent is dead now.
    const [gone, kept] = (await cluster.client.resource<Pod>(PODS).list()).items.filter(
      ({ spec }) => spec?.nodeName === 'node-2',
    );
    await cluster.client.resource<Pod>(PODS).delete(gone?.metadata.name ?? '', 'default', { gracePeriodSeconds: 1 });
    await create(cluster, simplePod('new', { nodeName: 'node-2' }));
    expect(node.runtime.trace.filter(({ what }) => what === 'exit' || what === 'signal')).toEqual([]);

    await cluster.restart('node-2');
    await cluster.until<Pod>(PODS, allReady(6));
    const starts = startsOf(node);
    expect(starts.slice(0, 2).sort()).toEqual(before);
    expect(starts).toHaveLength(3);
    const keptRuns = node.runtime.trace.filter(({ podUid }) => podUid === kept?.metadata.uid).map(({ what }) => what);
    expect(keptRuns).toEqual(['sandbox', 'start']);
  },
);

test('a removed node takes its Pods with it, and a new node gets new ones', async () => {
  await using cluster = await startSimulatedCluster({ nodes: 3, time: 'virtual' });
  await create(cluster, ...numbered(6));
  await cluster.until<Pod>(PODS, allReady(6));
  await cluster.removeNode('node-3');
  await cluster.until<Pod>(PODS, ({ length }) => length === 4);
  expect(Object.keys(await podsByNode(cluster)).sort()).toEqual(['node-1', 'node-2']);
  const { name } = await cluster.addNode();
  expect(name).toBe('node-4');
  await cluster.until<Node>(NODES, allReady(3));
  await create(cluster, simplePod('there', { nodeName: name }));
  await cluster.until<Pod>(PODS, allReady(5));
});

test('a node whose agent stays dead becomes NotReady, and its Pods are evicted, unless the agent comes back within five minutes', async () => {
  await using cluster = await startSimulatedCluster({ nodes: 3, time: 'virtual' });
  await create(cluster, ...numbered(6));
  await cluster.until<Pod>(PODS, allReady(6));
  const isOn = ({ spec }: Pod): boolean => spec?.nodeName === 'node-2';
  const areMarked = (pods: readonly Pod[]): boolean => pods.every((pod) => isReady(pod) !== isOn(pod));
  cluster.node('node-2').kill();
  await cluster.until<Pod>(PODS, areMarked);
  await cluster.restart('node-2');
  await cluster.until<Pod>(PODS, allReady(6));

  const died = cluster.timers.now();
  cluster.node('node-2').kill();
  const isUnknown = (node: Node): boolean => conditionOf(node, 'Ready') === 'Unknown';
  await cluster.until<Node>(NODES, (nodes) => nodes.some(isUnknown));
  expect(cluster.timers.now() - died).toBeGreaterThanOrEqual(40_000);
  expect(cluster.timers.now() - died).toBeLessThanOrEqual(51_000);
  await cluster.until<Pod>(PODS, areMarked);

  const pods = await cluster.until<Pod>(PODS, (all) =>
    all.filter(isOn).every(({ metadata }) => metadata.deletionTimestamp !== undefined),
  );
  const millis = cluster.timers.now() - died;
  expect(millis).toBeGreaterThan(5 * 60_000);
  expect(millis).toBeLessThan(7 * 60_000);
  expect(pods.filter(({ metadata }) => metadata.deletionTimestamp !== undefined)).toHaveLength(2);
  expect(pods.filter(isOn).map((pod) => conditionOf(pod, 'DisruptionTarget'))).toEqual(['True', 'True']);
  const nodes = (await cluster.client.resource<Node>(NODES).list()).items.filter(isReady);
  expect(nodes.map(({ metadata }) => metadata.name)).toEqual(['node-1', 'node-3']);

  await cluster.restart('node-2');
  await cluster.until<Node>(NODES, allReady(3));
  await cluster.until<Pod>(PODS, allReady(4));
  await cluster.until<Node>(NODES, (all) => all.every(({ spec }) => (spec?.taints ?? []).length === 0));
});

test('clients reach the API of a simulated cluster over HTTPS', async () => {
  await using cluster = await startSimulatedCluster({ nodes: 3, https: true, store: 'lmdb' });
  await cluster.until<Node>(NODES, allReady(3));
  const client = await clientFromKubeconfig(cluster.kubeconfig ?? '');
  const { items } = await client.resource<Node>(NODES).list();
  expect(items.map((node) => conditionOf(node, 'Ready'))).toEqual(['True', 'True', 'True']);
});

test('a simulated cluster whose test fails leaves nothing behind', async () => {
  let kubeconfig = '';
  const fail = async (): Promise<void> => {
    await using cluster = await startSimulatedCluster({ nodes: 3, https: true });
    kubeconfig = cluster.kubeconfig ?? '';
    expect(existsSync(kubeconfig)).toBe(true);
    throw new Error('the test fails');
  };
  await expect(fail()).rejects.toThrow('the test fails');
  expect(existsSync(dirname(kubeconfig))).toBe(false);
});

test('a simulated cluster that ends in the middle of its work does not hold up the next one', async () => {
  for (const time of ['real', 'virtual'] as const) {
    await using cluster = await startSimulatedCluster({ nodes: 10, time });
    for (const pod of numbered(100)) void cluster.client.resource<Pod>(PODS).create(pod);
  }
  await using cluster = await startSimulatedCluster({ nodes: 3, time: 'virtual' });
  await create(cluster, ...numbered(30));
  await cluster.until<Pod>(PODS, allReady(30));
});

test('a simulated cluster in virtual time has no HTTPS server and no store on the disk', async () => {
  await expect(startSimulatedCluster({ nodes: 1, time: 'virtual', https: true })).rejects.toThrow('no HTTPS server');
  await expect(startSimulatedCluster({ nodes: 1, time: 'virtual', store: 'lmdb' })).rejects.toThrow('in memory');
});

test('a wait in virtual time ends with what was there instead', async () => {
  await using cluster = await startSimulatedCluster({ nodes: 1, time: 'virtual' });
  await create(cluster, simplePod('here'));
  await expect(cluster.until<Pod>(PODS, () => false, 60_000)).rejects.toThrow(
    /not done after 60 s: default\/here.*Running/,
  );
});
