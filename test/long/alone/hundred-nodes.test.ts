import { expect, test } from 'vitest';
import type { Node, Pod } from '../../../src/api/generated/types.ts';
import { NODES, PODS } from '../../../src/api/resources.ts';
import { measured } from '../../support/simulated-nodes/measured.ts';
import { allReady, simplePod } from '../../support/simulated-nodes/objects.ts';
import { startSimulatedCluster } from '../../support/simulated-nodes/simulated-cluster.ts';

test.each(['real', 'virtual'] as const)('a hundred nodes with 300 Pods converge, in %s time', async (time) => {
  const lap = measured(`100 nodes in ${time} time`);
  await using cluster = await startSimulatedCluster({ nodes: 100, time });
  await cluster.until<Node>(NODES, allReady(100));
  lap('100 nodes Ready');
  const pods = Array.from({ length: 300 }, (_, i) => simplePod(`pod-${i}`));
  await cluster.during(Promise.all(pods.map((pod) => cluster.client.resource<Pod>(PODS).create(pod))));
  const running = await cluster.until<Pod>(PODS, allReady(300));
  lap('300 Pods Ready');
  const counts = Object.values(Object.groupBy(running, ({ spec }) => spec?.nodeName ?? '')).map((own) => own?.length);
  expect(counts).toEqual(Array(100).fill(3));
});
