import { expect, test } from 'vitest';
import type { Deployment, Pod } from '../../../src/api/generated/types.ts';
import { DEPLOYMENTS, NODES, PODS } from '../../../src/api/resources.ts';
import { measured } from '../../support/simulated-nodes/measured.ts';
import { allReady, simpleDeployment } from '../../support/simulated-nodes/objects.ts';
import { startSimulatedCluster } from '../../support/simulated-nodes/simulated-cluster.ts';

const isComplete = ({ metadata, status }: Deployment): boolean =>
  status?.observedGeneration === metadata.generation && status?.updatedReplicas === 5 && status.availableReplicas === 5;

test('200 Deployments with 1,000 Pods on 20 nodes converge within a minute, and roll over', async () => {
  const lap = measured('200 Deployments on 20 nodes');
  await using cluster = await startSimulatedCluster({ nodes: 20 });
  await cluster.until(NODES, allReady(20));
  lap('20 nodes Ready');
  const client = cluster.client.resource<Deployment>(DEPLOYMENTS);
  const names = Array.from({ length: 200 }, (_, i) => `web-${i}`);
  const begin = performance.now();
  await Promise.all(names.map((name) => client.create(simpleDeployment(name, 5))));
  await cluster.until<Deployment>(DEPLOYMENTS, (all) => all.every(isComplete));
  await cluster.until<Pod>(PODS, allReady(1000));
  lap('1,000 Pods of 200 Deployments Ready');
  expect(performance.now() - begin).toBeLessThan(60_000);

  const env = [{ name: 'V', value: '2' }];
  const spec = { template: { spec: { containers: [{ name: 'app', env }] } } };
  await Promise.all(
    names.map((name) => client.patch(name, 'default', 'application/strategic-merge-patch+json', { spec })),
  );
  await cluster.until<Deployment>(DEPLOYMENTS, (all) => all.every(isComplete));
  const pods = await cluster.until<Pod>(PODS, allReady(1000));
  lap('200 Deployments rolled over');
  expect(pods.every((pod) => pod.spec?.containers[0]?.env?.[0]?.value === '2')).toBe(true);
});
