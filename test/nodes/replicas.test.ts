import { expect, test } from 'vitest';
import type { Pod, ReplicaSet } from '../../src/api/generated/types.ts';
import { PODS, REPLICA_SETS } from '../../src/api/resources.ts';
import { allReady, isReady, simpleReplicaSet } from '../support/simulated-nodes/objects.ts';
import { type SimulatedCluster, startSimulatedCluster } from '../support/simulated-nodes/simulated-cluster.ts';

const scale = ({ client, during }: SimulatedCluster, replicas: number): Promise<unknown> =>
  during(
    client
      .resource<ReplicaSet>(REPLICA_SETS)
      .patch('web', 'default', 'application/merge-patch+json', { spec: { replicas } }),
  );

const hasStatus =
  (count: number) =>
  ([owner]: readonly ReplicaSet[]): boolean =>
    owner?.status?.observedGeneration === owner?.metadata.generation &&
    owner?.status?.replicas === count &&
    (owner.status.availableReplicas ?? 0) === count;

const namesOf = (pods: readonly Pod[]): Set<string> => new Set(pods.map(({ metadata }) => metadata.name));
const commonNames = (some: readonly Pod[], others: readonly Pod[]): number =>
  [...namesOf(some)].filter((name) => namesOf(others).has(name)).length;

test.each(['virtual', 'real'] as const)(
  'a ReplicaSet with 30 replicas on three nodes scales up and down and replaces a deleted Pod, in %s time',
  async (time) => {
    await using cluster = await startSimulatedCluster({ nodes: 3, time });
    await cluster.during(cluster.client.resource<ReplicaSet>(REPLICA_SETS).create(simpleReplicaSet('web', 30)));
    const first = await cluster.until<Pod>(PODS, allReady(30));
    expect(
      Object.values(Object.groupBy(first, ({ spec }) => spec?.nodeName ?? '')).map((pods) => pods?.length),
    ).toEqual([10, 10, 10]);
    await cluster.until<ReplicaSet>(REPLICA_SETS, hasStatus(30));

    const [gone = ''] = namesOf(first);
    await cluster.during(cluster.client.resource<Pod>(PODS).delete(gone, 'default'));
    const second = await cluster.until<Pod>(PODS, (pods) => allReady(30)(pods) && !namesOf(pods).has(gone));
    expect(commonNames(first, second)).toBe(29);

    await scale(cluster, 45);
    const more = await cluster.until<Pod>(PODS, allReady(45));
    expect(commonNames(second, more)).toBe(30);
    await cluster.until<ReplicaSet>(REPLICA_SETS, hasStatus(45));

    await scale(cluster, 6);
    const few = await cluster.until<Pod>(PODS, allReady(6));
    expect(commonNames(few, more)).toBe(6);
    await scale(cluster, 0);
    await cluster.until<Pod>(PODS, ({ length }) => length === 0);
    await cluster.until<ReplicaSet>(REPLICA_SETS, hasStatus(0));
  },
);

test('the Pods of a removed node and of a dead node are replaced on the other nodes', async () => {
  await using cluster = await startSimulatedCluster({ nodes: 3, time: 'virtual' });
  await cluster.during(cluster.client.resource<ReplicaSet>(REPLICA_SETS).create(simpleReplicaSet('web', 9)));
  await cluster.until<Pod>(PODS, allReady(9));
  await cluster.removeNode('node-3');
  await cluster.until<Pod>(PODS, allReady(9));
  cluster.node('node-2').kill();
  const runsOn = ({ spec }: Pod): boolean => spec?.nodeName === 'node-1';
  await cluster.until<Pod>(PODS, (pods) => pods.filter((pod) => runsOn(pod) && isReady(pod)).length === 9);
  await cluster.until<ReplicaSet>(REPLICA_SETS, hasStatus(9));
});
