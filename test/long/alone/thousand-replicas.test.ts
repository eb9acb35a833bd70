import { expect, test } from 'vitest';
import type { Node, Pod, ReplicaSet } from '../../../src/api/generated/types.ts';
import { NODES, PODS, REPLICA_SETS } from '../../../src/api/resources.ts';
import { measured } from '../../support/simulated-nodes/measured.ts';
import { allReady, simpleReplicaSet } from '../../support/simulated-nodes/objects.ts';
import { startSimulatedCluster } from '../../support/simulated-nodes/simulated-cluster.ts';

const SETS = 200;

test('200 ReplicaSets with 1,000 Pods on 20 nodes converge, are replaced and are scaled down', async () => {
  const lap = measured('200 ReplicaSets');
  await using cluster = await startSimulatedCluster({ nodes: 20 });
  await cluster.until<Node>(NODES, allReady(20));
  lap('20 nodes Ready');
  const owners = cluster.client.resource<ReplicaSet>(REPLICA_SETS);
  const names = Array.from({ length: SETS }, (_, i) => `web-${i}`);
  const areAvailable =
    (count: number) =>
    (sets: readonly ReplicaSet[]): boolean =>
      sets.every(({ status }) => status?.replicas === count && (status.availableReplicas ?? 0) === count);

  await Promise.all(names.map((name) => owners.create(simpleReplicaSet(name, 5))));
  const pods = await cluster.until<Pod>(PODS, allReady(5 * SETS));
  await cluster.until(REPLICA_SETS, areAvailable(5));
  lap('1,000 Pods available');

  await Promise.all(
    pods.slice(0, SETS).map(({ metadata }) => cluster.client.resource(PODS).delete(metadata.name, 'default')),
  );
  await cluster.until<Pod>(PODS, allReady(5 * SETS));
  await cluster.until(REPLICA_SETS, areAvailable(5));
  lap('200 deleted Pods replaced');

  await Promise.all(
    names.map((name) => owners.patch(name, 'default', 'application/merge-patch+json', { spec: { replicas: 1 } })),
  );
  expect(await cluster.until<Pod>(PODS, allReady(SETS))).toHaveLength(SETS);
  await cluster.until(REPLICA_SETS, areAvailable(1));
  lap('scaled down to 200 Pods');
});
