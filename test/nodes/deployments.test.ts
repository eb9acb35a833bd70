import { expect, test } from 'vitest';
import type { Deployment, DeploymentSpec, Pod, ReplicaSet } from '../../src/api/generated/types.ts';
import { DEPLOYMENTS, PODS, REPLICA_SETS } from '../../src/api/resources.ts';
import { allReady, simpleDeployment } from '../support/simulated-nodes/objects.ts';
import { type SimulatedCluster, startSimulatedCluster } from '../support/simulated-nodes/simulated-cluster.ts';

const sum = (sets: readonly ReplicaSet[], count: (set: ReplicaSet) => number | undefined): number =>
  sets.reduce((all, set) => all + (count(set) ?? 0), 0);
const sizeOf = ({ spec }: ReplicaSet): number => spec?.replicas ?? 0;
const availableOf = ({ status }: ReplicaSet): number => status?.availableReplicas ?? 0;

const version = (value: string): object => ({
  template: { spec: { containers: [{ name: 'app', env: [{ name: 'V', value }] }] } },
});
const versionOf = ({ spec }: Pod): string | undefined => spec?.containers[0]?.env?.[0]?.value;

const patch = ({ client, during }: SimulatedCluster, spec: object): Promise<Deployment> =>
  during(
    client
      .resource<Deployment>(DEPLOYMENTS)
      .patch('web', 'default', 'application/strategic-merge-patch+json', { spec }),
  );

const isComplete =
  (replicas: number) =>
  ([deployment]: readonly Deployment[]): boolean => {
    const { metadata, status } = deployment ?? {};
    const { observedGeneration, availableReplicas, updatedReplicas, replicas: all, unavailableReplicas } = status ?? {};
    const isAvailable = [availableReplicas, updatedReplicas, all].every((count) => count === replicas);
    return observedGeneration === metadata?.generation && isAvailable && unavailableReplicas === undefined;
  };

async function rolledOver(cluster: SimulatedCluster, to: string | undefined, replicas: number): Promise<void> {
  await cluster.until<ReplicaSet>(REPLICA_SETS, (sets) => {
    expect(sum(sets, sizeOf)).toBeLessThanOrEqual(replicas + 2);
    expect(sum(sets, (set) => Math.min(sizeOf(set), availableOf(set)))).toBeGreaterThanOrEqual(replicas - 3);
    return sets.some((set) => sizeOf(set) === replicas && availableOf(set) === replicas && versionIn(set) === to);
  });
  await cluster.until<Deployment>(DEPLOYMENTS, isComplete(replicas));
  const pods = await cluster.until<Pod>(PODS, allReady(replicas));
  expect(new Set(pods.map(versionOf))).toEqual(new Set([to]));
}

const versionIn = ({ spec }: ReplicaSet): string | undefined => spec?.template?.spec?.containers[0]?.env?.[0]?.value;

const AMOUNTS: Partial<DeploymentSpec> = {
  strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 2, maxUnavailable: 3 } },
};

async function deployed(cluster: SimulatedCluster, replicas: number): Promise<void> {
  await cluster.during(
    cluster.client.resource<Deployment>(DEPLOYMENTS).create(simpleDeployment('web', replicas, AMOUNTS)),
  );
  await cluster.until<Deployment>(DEPLOYMENTS, isComplete(replicas));
}

test.each(['virtual', 'real'] as const)(
  'a Deployment with 20 replicas on three nodes rolls over and back within its amounts, in %s time',
  async (time) => {
    await using cluster = await startSimulatedCluster({ nodes: 3, time });
    await deployed(cluster, 20);
    await patch(cluster, version('2'));
    await rolledOver(cluster, '2', 20);
    await patch(cluster, version('3'));
    await rolledOver(cluster, '3', 20);
    await patch(cluster, version('2'));
    await rolledOver(cluster, '2', 20);
    const sets = await cluster.until<ReplicaSet>(REPLICA_SETS, ({ length }) => length === 3);
    const revisions = sets.map(({ metadata }) => metadata.annotations?.['deployment.kubernetes.io/revision']);
    expect(revisions.sort()).toEqual(['1', '3', '4']);
  },
);

test('a Deployment that is paused in the middle of a rollout is scaled in proportion, and continues once it is resumed', async () => {
  await using cluster = await startSimulatedCluster({ nodes: 3, time: 'virtual' });
  await deployed(cluster, 10);
  await patch(cluster, version('2'));
  await cluster.until<ReplicaSet>(REPLICA_SETS, (sets) =>
    sets.some((set) => versionIn(set) === '2' && sizeOf(set) > 0),
  );
  await patch(cluster, { paused: true });
  const isObserved = ([web]: readonly Deployment[]): boolean =>
    web?.status?.observedGeneration === web?.metadata.generation;
  await cluster.until<Deployment>(DEPLOYMENTS, isObserved);
  const before = await cluster.until<ReplicaSet>(REPLICA_SETS, ({ length }) => length === 2);
  const sizes = (sets: readonly ReplicaSet[]): Record<string, number> =>
    Object.fromEntries(sets.map((set) => [versionIn(set) ?? 'first', sizeOf(set)]));

  await patch(cluster, { replicas: 22 });
  await cluster.until<Deployment>(DEPLOYMENTS, (all) => isObserved(all) && all[0]?.status?.availableReplicas === 24);
  const after = await cluster.until<ReplicaSet>(REPLICA_SETS, (sets) => sum(sets, sizeOf) === 24);
  for (const [name, size] of Object.entries(sizes(before)))
    expect(Math.abs((sizes(after)[name] ?? 0) - size * (24 / sum(before, sizeOf)))).toBeLessThanOrEqual(1);
  await patch(cluster, { paused: false });
  await rolledOver(cluster, '2', 22);
});

test('a Deployment that is scaled and changed again while it rolls ends with the last template', async () => {
  await using cluster = await startSimulatedCluster({ nodes: 3, time: 'virtual' });
  await deployed(cluster, 10);
  await patch(cluster, version('2'));
  await patch(cluster, { replicas: 15 });
  await patch(cluster, version('3'));
  await patch(cluster, { replicas: 6 });
  await cluster.until<Deployment>(DEPLOYMENTS, isComplete(6));
  const pods = await cluster.until<Pod>(PODS, allReady(6));
  expect(new Set(pods.map(versionOf))).toEqual(new Set(['3']));
});

test('the strategy Recreate never runs Pods of two templates at the same time', async () => {
  await using cluster = await startSimulatedCluster({ nodes: 3, time: 'virtual' });
  await deployed(cluster, 5);
  await patch(cluster, { strategy: { type: 'Recreate', rollingUpdate: null } });
  await patch(cluster, version('2'));
  await cluster.until<Pod>(PODS, (pods) => {
    const running = pods.filter(({ status }) => status?.phase === 'Running');
    expect(new Set(running.map(versionOf)).size).toBeLessThanOrEqual(1);
    return allReady(5)(pods) && versionOf(pods[0] as Pod) === '2';
  });
  await cluster.until<Deployment>(DEPLOYMENTS, isComplete(5));
});
