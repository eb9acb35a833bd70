import { expect, test } from 'vitest';
import type { Node, Pod } from '../../../src/api/generated/types.ts';
import { NODES, PODS } from '../../../src/api/resources.ts';
import { measured } from '../../support/simulated-nodes/measured.ts';
import { allReady, simplePod } from '../../support/simulated-nodes/objects.ts';
import { startSimulatedCluster } from '../../support/simulated-nodes/simulated-cluster.ts';

test('a thousand nodes come up, and run a Pod each', async () => {
  const lap = measured('1000 nodes');
  await using cluster = await startSimulatedCluster({ nodes: 1000 });
  await cluster.until<Node>(NODES, allReady(1000));
  lap('1000 nodes Ready');
  const pods = Array.from({ length: 1000 }, (_, i) => simplePod(`pod-${i}`));
  await Promise.all(pods.map((pod) => cluster.client.resource<Pod>(PODS).create(pod)));
  const running = await cluster.until<Pod>(PODS, allReady(1000));
  lap('1000 Pods Ready');
  expect(new Set(running.map(({ spec }) => spec?.nodeName)).size).toBe(1000);
});

test('a thousand nodes stay Ready, in virtual time', async () => {
  const lap = measured('1000 nodes in virtual time');
  await using cluster = await startSimulatedCluster({ nodes: 1000, time: 'virtual' });
  await cluster.until<Node>(NODES, allReady(1000));
  lap('1000 nodes Ready');
  await cluster.pass(2 * 60_000);
  lap('2 minutes passed');
  expect(allReady(1000)((await cluster.client.resource<Node>(NODES).list()).items)).toBe(true);
});
