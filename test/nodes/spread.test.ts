import { expect, test } from 'vitest';
import type { Node, Pod, StatefulSet } from '../../src/api/generated/types.ts';
import { NODES, PODS, STATEFUL_SETS } from '../../src/api/resources.ts';
import { allReady, isReady, simpleDeployment } from '../support/simulated-nodes/objects.ts';
import { startSimulatedCluster } from '../support/simulated-nodes/simulated-cluster.ts';

test('a StatefulSet that spreads over three nodes has one Pod on each after a node restarts and another is uncordoned', async () => {
  await using cluster = await startSimulatedCluster({ nodes: 3, time: 'virtual' });
  const { client, during, until } = cluster;
  await until<Node>(NODES, (nodes) => nodes.length === 3 && nodes.every(isReady));
  const cordon = (unschedulable: boolean): Promise<Node> =>
    during(
      client
        .resource<Node>(NODES)
        .patch('node-3', undefined, 'application/merge-patch+json', { spec: { unschedulable } }),
    );
  await cordon(true);
  await until<Node>(NODES, (nodes) => nodes.some(({ spec }) => spec?.unschedulable === true));
  const { selector = {}, template } = simpleDeployment('db', 3).spec ?? {};
  const constraint = {
    maxSkew: 1,
    topologyKey: 'kubernetes.io/hostname',
    whenUnsatisfiable: 'DoNotSchedule',
    labelSelector: selector,
  };
  const spec = { containers: [], ...template?.spec, topologySpreadConstraints: [constraint] };
  const set: StatefulSet = {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name: 'db', namespace: 'default' },
    spec: { replicas: 3, podManagementPolicy: 'Parallel', selector, template: { ...template, spec } },
  };
  await during(client.resource<StatefulSet>(STATEFUL_SETS).create(set));
  const waiting = await until<Pod>(PODS, (pods) => pods.length === 3 && pods.filter(isReady).length === 2);
  expect(waiting.map(({ spec: of }) => of?.nodeName ?? '').sort()).toEqual(['', 'node-1', 'node-2']);

  cluster.node('node-1').kill();
  await cluster.restart('node-1');
  await cordon(false);
  const spread = await until<Pod>(PODS, allReady(3));
  expect(spread.map(({ spec: of }) => of?.nodeName).sort()).toEqual(['node-1', 'node-2', 'node-3']);

  for (const { metadata } of spread) await during(client.resource<Pod>(PODS).delete(metadata.name, 'default'));
  const before = spread.map(({ metadata }) => metadata.uid);
  const after = await until<Pod>(
    PODS,
    (pods) => allReady(3)(pods) && pods.every(({ metadata }) => !before.includes(metadata.uid)),
  );
  expect(after.map(({ spec: of }) => of?.nodeName).sort()).toEqual(['node-1', 'node-2', 'node-3']);
});
